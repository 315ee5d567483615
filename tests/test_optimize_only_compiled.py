"""A report says where rewrites did no more than compile: the module may be faster still by others than them."""

from pathlib import Path

from tests.optimize_builders import SOURCE, GivenJudges, by_recipe, optimized, report_on, softmax_file

WORDS = "Rewrites only compiled or captured the forward as it is"
UNKNOWN = SOURCE.replace(
    """        e = torch.exp(x - torch.max(x, dim=1, keepdim=True)[0])
        return e / torch.sum(e, dim=1, keepdim=True)
""",
    "        return torch.linalg.svdvals(x)\n",
)


def test_a_report_says_that_no_rewrite_knows_what_a_module_computes(tmp_path: Path) -> None:
    file = softmax_file(tmp_path, UNKNOWN)
    assert WORDS in report_on(file, optimized(file, GivenJudges(by_recipe())))


def test_a_report_does_not_say_so_where_a_rewrite_changed_what_is_computed(tmp_path: Path) -> None:
    file = softmax_file(tmp_path, SOURCE)
    assert WORDS not in report_on(file, optimized(file, GivenJudges(by_recipe())))


def test_a_report_does_not_say_so_where_nobody_asked_for_rewrites(tmp_path: Path) -> None:
    file = softmax_file(tmp_path, UNKNOWN)
    assert WORDS not in report_on(file, optimized(file, GivenJudges(by_recipe()), proposers=[]))
