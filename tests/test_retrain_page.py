"""What is shown of a comparison: rows, numbers, the page and the plot."""

from tasks.problems.problem import Split
from tasks.report.comparison import Bout, Decision, Judgement, Skill, decide
from tasks.report.comparison_page import bout_rows, comparison_metrics, decision_page, speedup_plot

FAST = Skill(num_samples=4, num_correct=4, speedup=4.0)
FAILED = Skill(num_samples=4, num_correct=0, speedup=None)


def bouts(*, champion: Skill | None = FAILED) -> list[Bout]:
    return [
        Bout(problem_id="level1/a", split=Split.TRAIN, challenger=FAILED, champion=champion),
        Bout(problem_id="level1/b", split=Split.HELD_OUT, challenger=FAST, champion=champion),
        Bout(problem_id="level1/c", split=Split.HELD_OUT, challenger=FAILED, champion=champion),
    ]


def judged(pairs: list[Bout]) -> Judgement:
    return decide(pairs, deciding_splits=("held_out",), alpha=0.05, min_share_correct=0.1, seed=0)


def test_held_out_problems_come_first_and_failures_have_no_speedup():
    rows = bout_rows(bouts())
    assert [row["problem"] for row in rows] == ["level1/b", "level1/c", "level1/a"]
    assert (rows[0]["challenger, correct"], rows[0]["challenger, speedup"]) == ("4 of 4", 4.0)
    assert rows[1]["champion, speedup"] is None


def test_the_splits_are_summed_up_apart_with_failures_as_the_reference():
    metrics = comparison_metrics(bouts(), judged(bouts()))
    assert metrics["held_out/challenger/geomean"] == 2.0
    assert metrics["held_out/challenger/share_correct"] == 0.5
    assert metrics["train/challenger/geomean"] == 1.0
    assert metrics["speedup/p_better"] == 0.5


def test_the_page_says_why_and_links_what_has_an_address():
    pairs = bouts()
    judgement = judged(pairs)
    page = decision_page(
        judgement, comparison_metrics(pairs, judgement), {"champion": "http://host/1", "git tag": "v1"}
    )
    assert page.startswith("# Champion kept\n\nno difference that chance")
    assert "| held_out | challenger | 50.0% | 2.000x |" in page
    assert "- champion: [http://host/1](http://host/1)" in page
    assert "- git tag: `v1`" in page


def test_a_first_policy_is_shown_alone():
    pairs = bouts(champion=None)
    assert judged(pairs).decision is Decision.FIRST
    assert not [name for row in bout_rows(pairs) for name in row if "champion" in name]
    assert "champion |" not in decision_page(judged(pairs), comparison_metrics(pairs, judged(pairs)), {})
    assert speedup_plot(pairs).startswith(b"\x89PNG")


def test_the_plot_is_a_picture():
    assert speedup_plot(bouts()).startswith(b"\x89PNG")
