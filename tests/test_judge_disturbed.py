"""A judgement that others may have disturbed is done once more alone, and what that comes to counts."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tasks.errors import DisturbedError
from tasks.judge.evidence import RefusedError
from tasks.judge.judge import Judge
from tasks.judge.verdict import Status, Verdict
from tests.judge_builders import KERNELS, PARAMS, kernel

WAIT_S = 60.0
HONEST = kernel(KERNELS / "honest" / "in_place.py")
SEEDS = (0, 1)


class DisturbedJudge(Judge):
    """A real judge of two at once, each of which ends in the same way as long as it is not alone."""

    def __init__(self, error: Exception, **changes: Any) -> None:
        super().__init__(replace(PARAMS, workers=2, **changes))
        self.error = error
        self.num_ended = 0
        self._both_are_inside = threading.Barrier(2)
        self._inside = 0
        self._counting = threading.Lock()

    def _examine_once(self, *arguments: Any) -> None:
        with self._counting:
            self._inside += 1
            is_first = self.num_ended == 0
        try:
            if is_first:
                self._both_are_inside.wait(WAIT_S)
            if self._inside > 1 or is_first:
                with self._counting:
                    self.num_ended += 1
                raise self.error
            super()._examine_once(*arguments)
        finally:
            with self._counting:
                self._inside -= 1


def judged_side_by_side(judge: Judge) -> list[Verdict]:
    with judge, ThreadPoolExecutor(len(SEEDS)) as pool:
        return list(pool.map(lambda seed: judge.judge(HONEST.problem, HONEST.candidate, seed=seed), SEEDS))


@pytest.mark.parametrize(
    "error",
    [RefusedError(Status.UNSTABLE, "known to 20%"), DisturbedError("no answer in time")],
    ids=["a timing that does not settle", "out of time while another kept the device"],
)
def test_whoever_was_disturbed_is_judged_again_alone(error: Exception) -> None:
    judge = DisturbedJudge(error)
    assert [verdict.status for verdict in judged_side_by_side(judge)] == [Status.CORRECT, Status.CORRECT]
    assert judge.num_ended == 2


@pytest.mark.parametrize(
    ("status", "changes"),
    [(Status.TIMEOUT, {}), (Status.WRONG_OUTPUT, {}), (Status.UNSTABLE, {"tier": "long"})],
    ids=["out of time by itself", "other values", "in the long tier"],
)
def test_what_others_are_not_to_blame_for_is_final(status: Status, changes: dict[str, Any]) -> None:
    judge = DisturbedJudge(RefusedError(status, "beside another"), **changes)
    assert [verdict.status for verdict in judged_side_by_side(judge)] == [status, status]
    assert judge.num_ended == 2


def test_who_was_alone_from_the_beginning_is_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = []

    def refuse(*_: Any) -> None:
        judged.append(Status.UNSTABLE)
        raise RefusedError(Status.UNSTABLE, "by itself")

    with Judge(PARAMS) as judge:
        monkeypatch.setattr(judge, "_examine_once", refuse)
        assert judge.judge(HONEST.problem, HONEST.candidate, seed=0).status is Status.UNSTABLE
    assert judged == [Status.UNSTABLE]
