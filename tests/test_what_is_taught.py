"""Which of the judged variants sft learns from."""

import pytest

from flows.filter_variants import choose_taught
from tasks.judge.verdict import Status, Timing, Verdict
from tasks.params import FilterVariantsParams
from tasks.problems.problem import Problem, Split
from tasks.variants.candidate import Candidate

SOURCE = "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"


def problem(name: str, split: Split) -> Problem:
    return Problem(problem_id=name, level=1, family=name, split=split, source=SOURCE)


def judged(problem_id: str, text: str, speedup: float | None) -> tuple[Candidate, Verdict]:
    candidate = Candidate(problem_id=problem_id, source=text, origin="rewrites")
    timing = Timing(baseline="eager", reference_ms=(speedup,), candidate_ms=(1.0,)) if speedup else None
    verdict = Verdict(
        candidate_id=candidate.candidate_id,
        problem_id=problem_id,
        status=Status.CORRECT if timing else Status.WRONG_OUTPUT,
        device="cpu",
        protocol="test",
        timing=timing,
        seconds=0.1,
        judged_at=0.0,
    )
    return candidate, verdict


def taught(*pairs: tuple[Candidate, Verdict], most: int = 9, slowest: float = 0.5) -> list[tuple[str, float]]:
    problems = {"a": problem("a", Split.TRAIN), "b": problem("b", Split.TRAIN), "h": problem("h", Split.HELD_OUT)}
    params = FilterVariantsParams(min_speedup=slowest, max_per_problem=most)
    candidates, verdicts = zip(*pairs, strict=True)
    return [(candidate.source, speedup) for candidate, speedup in choose_taught(candidates, verdicts, problems, params)]


def test_the_fastest_come_first_within_each_problem():
    pairs = [judged("b", "b1", 1.0), judged("a", "a1", 1.0), judged("a", "a2", 3.0)]
    assert taught(*pairs) == [("a2", 3.0), ("a1", 1.0), ("b1", 1.0)]


def test_no_problem_is_taught_more_often_than_allowed():
    pairs = [judged("a", f"a{number}", number) for number in (1.0, 2.0, 3.0)] + [judged("b", "b1", 0.9)]
    assert taught(*pairs, most=2) == [("a3.0", 3.0), ("a2.0", 2.0), ("b1", 0.9)]


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(judged("a", "wrong", None), id="not correct"),
        pytest.param(judged("a", "slow", 0.4), id="too slow"),
        pytest.param(judged("h", "secret", 5.0), id="held out"),
    ],
)
def test_it_is_not_taught(pair):
    assert taught(pair, judged("a", "right", 1.0)) == [("right", 1.0)]
