"""A timing that never settles pays nothing, but what is wrong is still called wrong."""

from collections.abc import Iterator

import pytest

from tasks.judge import referee, timing
from tasks.judge.judge import Judge
from tasks.judge.verdict import Status, Verdict
from tests.judge_builders import KERNELS, PARAMS, kernel


@pytest.fixture(autouse=True)
def machine_on_which_nothing_settles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "UNSTABLE_ERROR", -1.0)
    monkeypatch.setattr(referee, "RETRIED_SHARE", 0.0)  # so that only the last trials can find what is wrong


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(PARAMS) as judge:
        yield judge


def judged(judge: Judge, name: str) -> Verdict:
    specimen = kernel(KERNELS / f"{name}.py")
    return judge.judge(specimen.problem, specimen.candidate, seed=0)


def test_an_honest_candidate_whose_timing_does_not_settle_is_unstable(judge: Judge) -> None:
    verdict = judged(judge, "honest/same")
    assert verdict.status is Status.UNSTABLE
    assert "the speedup is known to" in verdict.detail
    assert [check.name for check in verdict.checks if not check.passed] == ["settled"]
    assert verdict.speedup is None


def test_a_candidate_that_is_right_until_it_is_timed_is_wrong_even_where_nothing_settles(judge: Judge) -> None:
    verdict = judged(judge, "hostile/small_values_when_timed")
    assert verdict.status is Status.WRONG_OUTPUT, verdict.detail
