"""The rewriting engine and the built-in provider."""

import itertools
import random
from pathlib import Path
from typing import Any

import libcst as cst
import pytest
import torch

from tasks.params import GenerateVariantsParams
from tasks.problems.problem import Problem, Split
from tasks.variants.builtin import FAULTS, BuiltinProvider
from tasks.variants.rewrites import REWRITES
from tasks.variants.rewriting import as_candidate_program, explore, render, rewrite

SOURCE = '''# A reference.
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

SCALE = 2.0
ROWS = 64


def unused(x):
    return x


class Model(nn.Module):
    """Says what it does."""

    def __init__(self, features):
        super(Model, self).__init__()
        self.linear = nn.Linear(features, features)  # a layer

    def forward(self, x):
        x = (self.linear(x))
        x = x * torch.sigmoid(x)
        return (x + (SCALE * x)) * math.sqrt(2.0)


def get_inputs():
    return [torch.randn(ROWS, 8)]


def get_init_inputs():
    return [8]
'''
CANDIDATE = """import math

import torch
import torch.nn as nn

SCALE = 2.0


class ModelNew(nn.Module):
    def __init__(self, features):
        super(ModelNew, self).__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        x = self.linear(x)
        x = x * torch.sigmoid(x)
        return (x + SCALE * x) * math.sqrt(2.0)
"""


@pytest.fixture
def problem() -> Problem:
    return Problem(problem_id="level1/silu", level=1, family="activations", split=Split.TRAIN, source=SOURCE)


def provider(**changes) -> BuiltinProvider:
    params = {"max_per_problem": 12, "depth": 3, "draws": 20, "compiled_share": 0.5, "faulty_share": 0.25}
    return BuiltinProvider(GenerateVariantsParams(**(params | changes)))


def test_a_candidate_is_the_class_and_what_it_needs_laid_out_regularly():
    assert render(as_candidate_program(SOURCE)) == CANDIDATE


def test_rendering_changes_nothing_in_what_was_rendered():
    assert render(cst.parse_module(CANDIDATE)) == CANDIDATE


def test_rendering_adds_and_drops_imports_as_names_are_used():
    program = cst.parse_module("import math\n\n\nclass ModelNew(nn.Module):\n    f = F.relu(torch.ones(1))\n")
    assert render(program).splitlines()[:3] == [
        "import torch",
        "import torch.nn as nn",
        "import torch.nn.functional as F",
    ]


@pytest.mark.parametrize("known", [True, False], ids=["names that are there", "names for checkers of types only"])
def test_annotations_that_are_never_read_stay_so_without_the_import_that_says_so(known: bool) -> None:
    imports = "from torch import Tensor\n" if known else "if False:\n    from torch import Tensor\n"
    source = "from __future__ import annotations\n" + SOURCE.replace("import math\n", f"import math\n{imports}")
    source = source.replace("def forward(self, x):", "def forward(self, x: Tensor, of: Model | None = None) -> Tensor:")
    written = render(as_candidate_program(source))
    assert "def forward(self, x: 'Tensor', of: 'Model | None' = None) -> 'Tensor':" in written
    assert "__future__" not in written
    names: dict[str, Any] = {}
    exec(written, names)
    assert names["ModelNew"](8)(torch.ones(2, 8)).shape == (2, 8)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("(a * b) + c", "a * b + c", id="binds tighter"),
        pytest.param("a * (b + c)", "a * (b + c)", id="needed"),
        pytest.param("a - (b - c)", "a - (b - c)", id="groups to the right"),
        pytest.param("(a - b) - c", "a - b - c", id="groups to the left"),
        pytest.param("(a ** b) ** c", "(a ** b) ** c", id="power groups from the right"),
        pytest.param("(-a) ** b", "(-a) ** b", id="sign of a base"),
        pytest.param("a ** (-b)", "a ** -b", id="sign of an exponent"),
        pytest.param("not (a and b)", "not (a and b)", id="denied pair"),
        pytest.param("not (a > b)", "not a > b", id="denied comparison"),
        pytest.param("f((a + b))", "f(a + b)", id="argument"),
        pytest.param("(a + b).t()", "(a + b).t()", id="object of a method"),
        pytest.param("a[(b + 1):(c)]", "a[b + 1:c]", id="slice"),
        pytest.param("not(a)", "not a", id="a word before"),
        pytest.param("a in(b)or(c)", "a in b or (c)", id="words between"),
        pytest.param("(8).bit_length()", "(8).bit_length()", id="a number's attribute"),
        pytest.param("[(a if b else c), *(a if b else c)]", "[a if b else c, *(a if b else c)]", id="choice in a list"),
        pytest.param("f(*(a if b else c))", "f(*a if b else c)", id="choice of arguments"),
        pytest.param("(a, *(b | c), *(b or c))", "(a, *b | c, *(b or c))", id="elements of a tuple"),
    ],
)
def test_parentheses_stay_only_where_they_matter(written, expected):
    program = cst.parse_module(f"class ModelNew(nn.Module):\n    x = {written}\n")
    assert render(program).splitlines()[-1] == f"    x = {expected}"


def test_a_word_before_parentheses_keeps_its_distance():
    program = cst.parse_module("class ModelNew(nn.Module):\n    def forward(self, x):\n        return(x)\n")
    assert render(program).splitlines()[-1] == "        return x"


def test_a_rewrite_is_named_after_its_function():
    @rewrite("algebra")
    def leave_alone(program, rng):
        """Assumes nothing."""

    assert (leave_alone.name, leave_alone.group) == ("leave_alone", "algebra")


def test_names_of_rewrites_are_unique():
    names = [each.name for each in REWRITES]
    assert len(set(names)) == len(names)


def test_exploring_gives_distinct_texts_other_than_the_reference_with_their_recipes(problem):
    found = list(explore(problem, provider().rewrites, rng=random.Random(0), depth=2, draws=15))
    texts = [candidate.source for candidate in found]
    assert len(set(texts)) == len(texts) > 3
    assert CANDIDATE not in texts
    assert all(1 <= len(candidate.recipe) <= 2 for candidate in found)


def test_exploring_replays_for_equal_random_states(problem):
    runs = [list(explore(problem, provider().rewrites, rng=random.Random(7), depth=3, draws=8)) for _ in range(2)]
    assert [(each.source, each.recipe) for each in runs[0]] == [(each.source, each.recipe) for each in runs[1]]


def test_exploring_without_rewrites_finds_nothing(problem):
    assert list(explore(problem, (), rng=random.Random(0), depth=3, draws=5)) == []


def test_the_provider_begins_with_the_reference_and_repeats_no_text(problem):
    found = list(provider().candidates(problem, seed=0))
    assert (found[0].source, found[0].recipe) == (CANDIDATE, ())
    assert len({candidate.source for candidate in found}) == len(found)
    assert {candidate.origin for candidate in found} == {"rewrites"}


@pytest.mark.parametrize("seed", range(4))
def test_a_parent_comes_before_its_child_and_is_a_rewrite_less_where_that_one_was_kept(problem, seed):
    came: dict[str, tuple[str, ...]] = {}
    nearest = 0
    for candidate in provider(draws=60, depth=3, faulty_share=0.3).candidates(problem, seed=seed):
        if candidate.recipe:
            assert candidate.parent_id in came
            nearest += len(candidate.recipe) > 1 and came[candidate.parent_id] == candidate.recipe[:-1]
        else:
            assert candidate.parent_id is None
        came[candidate.candidate_id] = candidate.recipe
    assert nearest > 1


def test_the_provider_depends_on_seed_and_problem_only(problem):
    texts = [
        [candidate.source for candidate in itertools.islice(provider().candidates(problem, seed=seed), 10)]
        for seed in (0, 0, 1)
    ]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5])
def test_faulty_candidates_make_up_their_share_from_the_start(problem, share):
    faults = {each.name for each in REWRITES if each.group == FAULTS}
    found = list(itertools.islice(provider(faulty_share=share).candidates(problem, seed=0), 12))
    faulty = [candidate for candidate in found if faults & set(candidate.recipe)]
    assert abs(len(faulty) - share * len(found)) <= 1


@pytest.mark.parametrize("path", sorted(Path("data/problems").glob("level*/*.py")), ids=lambda path: path.stem)
def test_every_built_in_problem_gets_at_least_eight_candidates(path):
    level = path.parent.name
    problem = Problem(
        problem_id=f"{level}/{path.stem}",
        level=int(level[-1]),
        family="any",
        split=Split.TRAIN,
        source=path.read_text(),
    )
    assert len(list(itertools.islice(provider().candidates(problem, seed=0), 8))) == 8


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_compiled_candidates_come_early_for_their_share_of_the_problems(problem, share):
    names = {each.name for each in provider().compiled}
    early = list(itertools.islice(provider(compiled_share=share, faulty_share=0.0).candidates(problem, seed=0), 12))
    assert any(names & set(candidate.recipe) for candidate in early) == bool(share)
