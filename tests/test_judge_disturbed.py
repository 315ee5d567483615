"""A judgement that others may have disturbed is done once more alone, and what that comes to counts."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Self, cast

import pytest

from tasks.judge.cuda import Device
from tasks.judge.evidence import Evidence, RefusedError
from tasks.judge.judge import Judge
from tasks.judge.room import Room
from tasks.judge.verdict import Status, Track, Verdict
from tasks.variants.candidate import Candidate
from tests.judge_builders import KERNELS, PARAMS, RIGHT, kernel

WAIT_S = 60.0
HONEST = kernel(KERNELS / "honest" / "in_place.py")
SEEDS = (0, 1)


class DisturbedJudge(Judge):
    """A real judge of two at once, both of which end alike the first time; notes how many others each found inside."""

    def __init__(self, status: Status, **changes: Any) -> None:
        super().__init__(replace(PARAMS, workers=2, **changes))
        self.status = status
        self.company: list[int] = []
        self._both_are_inside = threading.Barrier(2)
        self._inside = 0
        self._counting = threading.Lock()

    def _examine_once(self, *arguments: Any) -> None:
        with self._counting:
            self.company.append(self._inside)
            self._inside += 1
            is_first = len(self.company) <= 2
        try:
            if is_first:
                self._both_are_inside.wait(WAIT_S)
                raise RefusedError(self.status, "beside another")
            super()._examine_once(*arguments)
        finally:
            with self._counting:
                self._inside -= 1


def judged_side_by_side(judge: Judge) -> list[Verdict]:
    with judge, ThreadPoolExecutor(len(SEEDS)) as pool:
        return list(pool.map(lambda seed: judge.judge(HONEST.problem, HONEST.candidate, seed=seed), SEEDS))


def test_whoever_did_not_settle_beside_another_is_judged_again_alone() -> None:
    judge = DisturbedJudge(Status.UNSTABLE)
    assert {verdict.status for verdict in judged_side_by_side(judge)} <= set(RIGHT)
    assert judge.company[-2:] == [0, 0]
    assert len(judge.company) == 4


@pytest.mark.parametrize(
    ("status", "changes"),
    [(Status.TIMEOUT, {}), (Status.WRONG_OUTPUT, {}), (Status.UNSTABLE, {"tier": "long"})],
    ids=["out of time by itself", "other values", "in the long tier"],
)
def test_what_others_are_not_to_blame_for_is_final(status: Status, changes: dict[str, Any]) -> None:
    judge = DisturbedJudge(status, **changes)
    assert [verdict.status for verdict in judged_side_by_side(judge)] == [status, status]
    assert len(judge.company) == 2


class HeldUpJudge(Judge):
    """A judge on a device of these three at once, which run out of time in their order; whoever is alone answers."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        super().__init__(replace(PARAMS, workers=3))
        self.judged: list[int] = []
        self._candidates = candidates
        self._all_are_inside = threading.Barrier(3)
        self._ends = [threading.Event() for _ in range(3)]
        self._ends[0].set()

    def __enter__(self) -> Self:
        super().__enter__()
        self._device = cast(Device, object())
        return self

    def _examine_once(self, *arguments: Any) -> None:
        number = self._candidates.index(arguments[3])
        is_first_time = number not in self.judged
        self.judged.append(number)
        if is_first_time:
            self._all_are_inside.wait(WAIT_S)
            self._ends[number].wait(WAIT_S)
            for following in self._ends[number + 1 : number + 2]:
                threading.Timer(0.2, following.set).start()
            raise RefusedError(Status.TIMEOUT, "no answer")
        raise RefusedError(Status.WRONG_OUTPUT, "an answer at last")


def test_of_those_that_run_out_of_time_on_a_device_the_last_is_to_blame_and_the_others_are_judged_again() -> None:
    candidates = [replace(HONEST.candidate, source=f"{HONEST.source}\n# {number}\n") for number in range(3)]
    with HeldUpJudge(candidates) as judge, ThreadPoolExecutor(3) as pool:
        verdicts = list(pool.map(lambda candidate: judge.judge(HONEST.problem, candidate, seed=0), candidates))
    assert [verdict.status for verdict in verdicts] == [Status.WRONG_OUTPUT, Status.WRONG_OUTPUT, Status.TIMEOUT]
    assert sorted(judge.judged) == [0, 0, 1, 1, 2]


def test_nothing_of_the_attempt_that_does_not_count_is_left_in_the_verdict() -> None:
    evidence = Evidence(max_error=0.5, track=Track.KERNEL)
    evidence.passed("fresh_inputs")
    evidence.clear()
    assert evidence == Evidence()


def test_the_room_knows_who_was_there_at_the_same_time() -> None:
    room = Room()
    with room.shared() as first_had_company:
        assert not first_had_company()
        with room.shared() as second_had_company:
            pass
        assert first_had_company()  # also when the other has left
        assert second_had_company()
    with room.alone() as had_company:
        assert not had_company()


def test_who_was_alone_from_the_beginning_is_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = []

    def refuse(*_: Any) -> None:
        judged.append(Status.UNSTABLE)
        raise RefusedError(Status.UNSTABLE, "by itself")

    with Judge(PARAMS) as judge:
        monkeypatch.setattr(judge, "_examine_once", refuse)
        assert judge.judge(HONEST.problem, HONEST.candidate, seed=0).status is Status.UNSTABLE
    assert judged == [Status.UNSTABLE]
