"""What supervised training is fed: balanced, and renamed without a change of meaning."""

import ast
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tasks.problems.problem import Problem, Split
from tasks.training.examples import Example, sft_examples
from tasks.training.policy import encode_prompt
from tasks.training.renaming import own_names, rename_consistently
from tasks.variants.prompts import as_completion, parse_completion
from tests.training_builders import SCALED, SCALED_BY_CLAMP, SCALED_IN_PLACE, exemplar, policy, problem

VARIABLES = [f"v{number}" for number in range(40)]
ATTRIBUTES = [f"a{number}" for number in range(40)]
REGISTERED = SCALED.replace("        out = ", "        x = x.abs()\n        out = ").replace(
    "        self.linear", '        self.register_buffer("shift", torch.ones(features))\n        self.linear'
)
POLICY = policy()
PROBLEMS = sorted(Path("data/problems").rglob("*.py"))


def renamed(*sources: str, seed: int = 0) -> list[str]:
    return rename_consistently(sources, variables=VARIABLES, attributes=ATTRIBUTES, rng=random.Random(seed))


def outputs(reference: str, source: str, name: str) -> list[torch.Tensor]:
    """What the class of that name in the source gives on the reference's inputs."""
    inputs: dict = {}
    exec(reference, inputs)
    module: dict = {}
    exec(source, module)
    torch.manual_seed(0)
    model = module[name](*inputs["get_init_inputs"]())
    torch.manual_seed(1)
    with torch.no_grad():
        answer = model(*inputs["get_inputs"]())
    return list(answer) if isinstance(answer, tuple) else [answer]


def assert_equal(some: list[torch.Tensor], others: list[torch.Tensor]) -> None:
    assert len(some) == len(others)
    for one, other in zip(some, others, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)


@pytest.mark.parametrize("path", PROBLEMS[::6], ids=lambda path: path.stem)
def test_a_renamed_program_computes_what_it_did(path):
    source = path.read_text()
    (changed,) = renamed(source)
    assert changed != source
    assert_equal(outputs(source, source, "Model"), outputs(changed, changed, "Model"))


def test_a_renamed_candidate_still_equals_its_renamed_reference():
    reference, *candidates = renamed(SCALED, SCALED_IN_PLACE, SCALED_BY_CLAMP)
    for candidate in candidates:
        assert_equal(outputs(SCALED, SCALED, "Model"), outputs(reference, candidate, "ModelNew"))
    attribute = reference.split("self.")[1].split(" ")[0]
    assert attribute in ATTRIBUTES
    assert all(f"self.{attribute}(" in candidate for candidate in candidates)


def test_a_renamed_program_keeps_its_layout():
    changed, _ = renamed(SCALED, SCALED_IN_PLACE)
    assert [len(line) - len(line.lstrip()) for line in changed.splitlines()] == [
        len(line) - len(line.lstrip()) for line in SCALED.splitlines()
    ]


HEAD = "import torch\n\n\nclass Model:\n    def forward(self, x, dim):\n"


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("        return torch.sum(x, dim=1)\n", "dim"),
        ("        return x.dim\n", ".dim"),
        ("        self.dim = dim\n        return x.dim + self.dim\n", "self.dim"),
        ('        return getattr(self, "dim") + dim\n', "dim"),
        ('        return f"{dim}"\n', "{dim}"),
        ("        global size\n        size = 1\n", "size = 1"),
        ("        import math as dim\n        return dim\n", "dim\n"),
        ("        try:\n            pass\n        except ValueError as dim:\n            return dim\n", "as dim"),
        ("        def dim():\n            return x\n        return dim()\n", "dim()"),
    ],
    ids=[
        "keyword argument",
        "attribute of something else",
        "attribute of self and of something else",
        "name in a string",
        "formatted string",
        "global",
        "import",
        "exception",
        "function",
    ],
)
def test_a_name_that_may_be_more_than_a_name_stays(body, kept):
    (changed,) = renamed(HEAD + body)
    assert kept in changed
    compile(changed, "renamed", "exec")


def test_a_new_name_is_never_one_that_is_there_already():
    source = HEAD + "        y = x + 1\n        return y + dim\n"
    for seed in range(20):
        (changed,) = rename_consistently(
            [source], variables=["x", "y", "dim", "w"], attributes=[], rng=random.Random(seed)
        )
        names = own_names(changed).variables
        assert len(names - {"self"}) == 3


def test_names_only_a_candidate_has_stay():
    candidate = SCALED_IN_PLACE.replace("return out", "extra = out\n        return extra")
    _, changed = renamed(SCALED, candidate)
    assert "extra = " in changed


def test_every_problem_is_taught_as_often_as_every_other():
    rows = examples([problem("one"), problem("two", SCALED.replace("2.0", "3.0")), problem("untaught")], count=41)
    counts = Counter("3.0" in row.prompt for row in rows)
    assert len(rows) == 41
    assert abs(counts[True] - counts[False]) == 1


def test_faster_candidates_are_taught_a_little_more_often():
    taught = {"level1/one": [exemplar(SCALED_IN_PLACE, speedup=4.0), exemplar(SCALED_BY_CLAMP, speedup=1.0)]}
    rows = examples([problem("one")], taught=taught, count=3000)
    share = sum("relu_" in row.completion for row in rows) / 3000
    assert share == pytest.approx(2 / 3, abs=0.05)


def test_speed_is_ignored_where_it_is_not_to_be_weighed():
    taught = {"level1/one": [exemplar(SCALED_IN_PLACE, speedup=100.0), exemplar(SCALED_BY_CLAMP, speedup=0.1)]}
    rows = examples([problem("one")], taught=taught, count=3000, weighs_speed=False)
    share = sum("relu_" in row.completion for row in rows) / 3000
    assert share == pytest.approx(1 / 2, abs=0.05)


def num_tokens(row: Example) -> int:
    return len(encode_prompt(POLICY, row.prompt)) + len(POLICY.tokenizer(row.completion).input_ids) + 1


def speedups_shown(row: Example) -> list[str]:
    return [line for line in row.prompt.splitlines() if line.startswith("# ") and line.endswith("x")]


def test_exemplars_are_left_out_the_slowest_first_until_prompt_and_completion_fit():
    asked = {"count": 20, "exemplar_share": 1.0, "seed": 3}
    whole = examples([problem("one")], **asked)
    longest = max(map(num_tokens, whole))
    bare = max(map(num_tokens, examples([problem("one")], count=20)))
    assert {len(speedups_shown(row)) for row in whole} == {2}
    seen = set()
    for context_tokens in (longest, longest - 1, (longest + bare) // 2, bare):
        rows = examples([problem("one")], context_tokens=context_tokens, **asked)
        assert [row.completion for row in rows] == [row.completion for row in whole]
        for row, full in zip(rows, whole, strict=True):
            num_shown = len(speedups_shown(row))
            assert num_tokens(row) <= context_tokens
            assert speedups_shown(row) == speedups_shown(full)[2 - num_shown :]
            seen.add((context_tokens, num_shown))
    assert {(longest, 2), (longest - 1, 2), (longest - 1, 1), (bare, 0)} <= seen
    assert not {(longest, 1), (longest, 0), (bare, 1)} & seen


@pytest.mark.parametrize("limit", ["context_tokens", "completion_tokens"])
def test_what_does_not_fit_without_exemplars_either_is_left_out(limit):
    long = SCALED_IN_PLACE.replace("out = self.linear(x)", "out = self.linear(x)" + " + 0.0" * 60)
    taught = {"level1/one": [exemplar(SCALED_BY_CLAMP), exemplar(long)]}
    asked = {"taught": taught, "count": 200, "exemplar_share": 0.5, "weighs_speed": False}
    whole = examples([problem("one")], **asked)
    short = [row for row in whole if " + 0.0" not in row.completion]
    most = {
        "context_tokens": max(num_tokens(row) for row in short if "ModelNew" not in row.prompt),
        "completion_tokens": max(len(POLICY.tokenizer(row.completion).input_ids) + 1 for row in short),
    }
    rows = examples([problem("one")], **asked, **{limit: most[limit]})
    assert [row.completion for row in rows] == [row.completion for row in short]
    assert len(rows) == pytest.approx(100, abs=30)


def test_exemplars_are_others_of_the_same_problem_the_slowest_first():
    rows = examples([problem("one")], count=50, exemplar_share=1.0)
    for row in rows:
        shown = row.prompt.split("# faster\n")[0].split("class ModelNew")[1:]
        assert len(shown) == 2
        assert not any(row.completion.endswith(text.split("# ")[0].strip()) for text in shown)
        speedups = [
            float(line[2:-1]) for line in row.prompt.splitlines() if line.startswith("# ") and line.endswith("x")
        ]
        assert speedups == sorted(speedups)


def test_the_share_of_exemplars_is_kept():
    rows = examples([problem("one")], count=2000, exemplar_share=0.3)
    assert sum("ModelNew" in row.prompt for row in rows) / 2000 == pytest.approx(0.3, abs=0.05)


def test_whole_examples_are_renamed_and_only_their_share():
    other = problem("two", SCALED.replace("linear", "projection").replace("* 2.0", "* 3.0"))
    rows = examples([problem("one"), other], count=4000, exemplar_share=1.0, renamed_share=0.4)
    rows = [row for row in rows if "* 3.0" not in row.prompt]
    kept = [row for row in rows if "self.linear = " in row.prompt]
    assert len(kept) / len(rows) == pytest.approx(0.6, abs=0.05)
    for row in rows:
        assert row.prompt.count("self.linear = ") == (3 if row in kept else 0)
        assert ("self.linear = " in row.completion) == (row in kept)


def test_invented_programs_are_repeated_as_they_are():
    rows = examples([problem("one"), problem("two", REGISTERED)], count=400, invented_share=0.5)
    invented = [row for row in rows if _as_candidate(row.prompt) == row.completion]
    assert len(invented) >= 200
    assert len({row.completion for row in invented}) > 150
    for row in invented:
        compile(row.completion, "invented", "exec")
        problem("invented", row.prompt.removeprefix("# reference\n").removesuffix("# faster\n"))


@pytest.mark.parametrize(
    "source",
    [
        SCALED.split("def get_init_inputs")[0],
        SCALED.replace("def get_inputs():\n    return", "get_inputs = lambda:"),
        SCALED.replace("        out = self.linear(x)\n", ""),
        SCALED.replace("    ", "  "),
        SCALED.replace("    ", "\t"),
        SCALED.replace("        ", " " * 12),
        SCALED.replace("out = self.linear(x)", "out = self.linear(x); out = torch.add(\n            out, 1)"),
        SCALED.replace("        out = self.linear(x)\n", "").replace("(out)", '(x + len("""\nunindented\n"""))'),
        SCALED[: SCALED.index("    def __init__")] + "    pass\n" + SCALED[SCALED.index("\n\ndef get_inputs") :],
    ],
    ids=[
        "no get_init_inputs",
        "get_inputs is no function",
        "only a return",
        "two spaces",
        "tabs",
        "twelve spaces",
        "two statements in a line",
        "nothing but a text of several lines",
        "no forward",
    ],
)
def test_programs_are_invented_whatever_the_problems_look_like(source):
    known = [Problem(problem_id="level1/scaled", level=1, family="scaled", split=Split.TRAIN, source=source)]
    candidates = {"level1/scaled": [exemplar(source.split("\n\n\ndef get")[0].replace("Model(", "ModelNew("))]}
    for row in examples(known, taught=candidates, count=60, invented_share=1.0):
        ast.parse(row.completion)
        assert "def forward(self" in row.completion


def test_invented_programs_are_as_short_as_the_policy_writes_them():
    rows = examples([problem("one")], count=60, invented_share=1.0, completion_tokens=150)
    lengths = [len(POLICY.tokenizer(row.completion).input_ids) for row in rows]
    assert max(lengths) < 150
    rows = examples([problem("one")], count=60, invented_share=1.0, completion_tokens=600)
    lengths = [len(POLICY.tokenizer(row.completion).input_ids) for row in rows]
    assert max(lengths) > 150


def _as_candidate(prompt: str) -> str:
    program = prompt.removeprefix("# reference\n").split("def get_inputs")[0]
    return program.replace("class Model(", "class ModelNew(").strip()


def test_equal_seeds_give_equal_examples():
    assert examples([problem("one")], seed=1) == examples([problem("one")], seed=1)
    assert examples([problem("one")], seed=1) != examples([problem("one")], seed=2)


def test_problems_with_nothing_taught_give_no_examples():
    assert examples([problem("one")], taught={}) == []


@pytest.mark.parametrize("style", ["compact", "instruct"])
def test_a_completion_is_read_as_the_source_it_was_made_of(style):
    completion = as_completion(SCALED_IN_PLACE, style=style)
    assert parse_completion(completion, style=style) == SCALED_IN_PLACE


def examples(
    problems,
    *,
    taught=None,
    count=20,
    exemplar_share=0.0,
    renamed_share=0.0,
    invented_share=0.0,
    weighs_speed=True,
    context_tokens=4000,
    completion_tokens=600,
    seed=0,
):
    candidates = [
        exemplar(SCALED_IN_PLACE, speedup=3.0),
        exemplar(SCALED_BY_CLAMP, speedup=1.5),
        exemplar(SCALED_BY_CLAMP.replace("2.0", "(2.0)"), speedup=1.2),
    ]
    if taught is None:
        taught = {each.problem_id: candidates for each in problems if "untaught" not in each.problem_id}
    return sft_examples(
        problems,
        taught,
        count=count,
        weighs_speed=weighs_speed,
        exemplar_share=exemplar_share,
        renamed_share=renamed_share,
        invented_share=invented_share,
        num_exemplars=2,
        policy=replace(POLICY, context_tokens=context_tokens, completion_tokens=completion_tokens),
        seed=seed,
    )
