"""In which order rewrites are proposed: what is hoped to bring most first, and what takes long to judge last."""

import random
from collections.abc import Callable
from pathlib import Path

import libcst as cst
import pytest

from tasks.judge.verdict import Status
from tasks.problems.problem import Problem
from tasks.search.compositions import Compositions
from tasks.search.experience import Experience
from tasks.search.found import Scored
from tasks.search.search import SCREEN
from tasks.search.texts import problem_texts
from tasks.variants.candidate import Candidate
from tasks.variants.rewrites import REWRITES
from tasks.variants.rewriting import Rewrite
from tests.optimize_builders import FACTS, GivenJudges, by_recipe, softmax_file


@pytest.fixture
def softmax(tmp_path: Path) -> Problem:
    return problem_texts(softmax_file(tmp_path), FACTS).shown


def proposed(
    compositions: Compositions, problem: Problem, *, count: int, speed: Callable[[Candidate], float | Status]
) -> list[tuple[str, ...]]:
    """The recipes that are proposed, each judged before the next."""
    judge = GivenJudges(lambda rung, candidate: speed(candidate)).at(SCREEN)
    found: list[Scored] = []
    while len(found) < count and (candidate := compositions.propose(found)) is not None:
        verdict = judge.judge(problem, candidate, seed=0, best_speedup=None)
        found.append(Scored(candidate=candidate, verdict=verdict, rung=SCREEN))
    compositions.hope(found)  # learns from the last one too
    return [each.candidate.recipe for each in found]


def test_kernels_of_whole_chains_come_before_small_edits_and_compiling_last(softmax: Problem) -> None:
    compositions = Compositions(softmax, seed=0)
    recipes = proposed(compositions, softmax, count=14, speed=lambda candidate: 0.9)
    names = [name for (name,) in recipes]
    assert names.index("reduction_in_c") < names.index("call_softmax") < names.index("work_in_place")
    assert names[-1] == "compile_forward_static"
    assert compositions.hope([]) == 0.0


def test_what_somebody_else_had_judged_is_learnt_from_and_not_proposed_again(softmax: Problem) -> None:
    first = Compositions(softmax, seed=0).propose([])
    assert first is not None
    verdict = GivenJudges(lambda rung, candidate: 0.9).at(SCREEN).judge(softmax, first, seed=0, best_speedup=None)
    compositions, found = Compositions(softmax, seed=0), [Scored(candidate=first, verdict=verdict, rung=SCREEN)]
    proposals = iter(lambda: compositions.propose(found), None)
    assert first.candidate_id not in {each.candidate_id for each in proposals}


def test_the_fastest_text_is_rewritten_before_small_edits_of_the_first(softmax: Problem) -> None:
    speed = by_recipe(call_amax=1.5)
    recipes = proposed(
        Compositions(softmax, seed=0), softmax, count=12, speed=lambda candidate: speed(SCREEN, candidate)
    )
    on_fastest = next(place for place, recipe in enumerate(recipes) if recipe[0] == "call_amax" and len(recipe) > 1)
    assert on_fastest < recipes.index(("work_in_place",))


def test_a_search_that_is_stuck_has_the_fastest_text_compiled(
    softmax: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def speed(candidate: Candidate) -> float:
        return 2.0 if candidate.recipe[0] == "call_amax" else 1.0

    monkeypatch.setattr("tasks.search.compositions.STUCK", 4)
    recipes = proposed(Compositions(softmax, seed=0), softmax, count=12, speed=speed)
    first = recipes.index(("call_amax",)) + 1
    compiled = [place for place, recipe in enumerate(recipes) if recipe[-1].startswith("compile")]
    assert compiled == [first + 4, first + 8]
    assert recipes[first + 4][0] == "call_amax"


def test_what_won_elsewhere_is_tried_first(softmax: Problem) -> None:
    experience = Experience()
    other = Compositions(softmax, seed=0, experience=experience)
    proposed(other, softmax, count=8, speed=lambda candidate: 9.0 if candidate.recipe[-1] == "call_softmax" else 0.5)
    compositions = Compositions(softmax, seed=0, experience=experience)
    assert compositions.hope([]) > 3.0
    assert proposed(compositions, softmax, count=1, speed=lambda candidate: 1.0) == [("call_softmax",)]


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        pytest.param(4.0, 2.0, id="it brought something"),
        pytest.param(Status.WRONG_OUTPUT, 0.5**0.5, id="it was refused"),
        pytest.param(Status.UNSTABLE, 1.0, id="nobody knows"),
    ],
)
def test_others_learn_from_what_is_known_of_a_rewrite(
    softmax: Problem, verdict: float | Status, expected: float
) -> None:
    experience = Experience()
    compositions = Compositions(softmax, seed=0, experience=experience)
    ((name,),) = proposed(compositions, softmax, count=1, speed=lambda candidate: verdict)
    assert experience.expected(name, prior=1.0) == pytest.approx(expected)


def test_a_rewrite_that_fails_is_left_out_and_told_of_once(softmax: Problem, caplog: pytest.LogCaptureFixture) -> None:
    def broken(program: cst.Module, rng: random.Random) -> cst.Module | None:
        raise KeyError(program)

    failing = Rewrite(name="broken", group="memory", apply=broken)
    compositions = Compositions(softmax, seed=0, rewrites=[failing, *REWRITES])
    with_it = proposed(compositions, softmax, count=12, speed=lambda candidate: 1.0)
    assert with_it == proposed(Compositions(softmax, seed=0), softmax, count=12, speed=lambda candidate: 1.0)
    (told,) = caplog.messages
    assert told.startswith("rewrite broken fails on Softmax and is left out: KeyError: Module( ")
    assert "\n" not in told
    assert len(told) < 250
