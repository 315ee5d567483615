"""A judgement that finds the device full beside others is done once more alone, and fails only if that fails too."""

import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tasks.errors import FullDeviceError
from tasks.judge.judge import ATTEMPTS, Judge
from tasks.judge.referee import Examination
from tasks.judge.room import Room
from tasks.judge.verdict import Status
from tests.judge_builders import KERNELS, PARAMS, kernel

WAIT_S = 60.0
HONEST = kernel(KERNELS / "honest" / "in_place.py")


class CrowdedJudge(Judge):
    """A real judge on whose device there is room for so many judgements at once."""

    def __init__(self, room_for: int) -> None:
        super().__init__(PARAMS)
        self.room_for = room_for
        self.all_have_come = threading.Barrier(2)
        self.num_failed = 0
        self._inside = 0
        self._counting = threading.Lock()

    def _examine_once(self, *arguments: Any) -> None:
        with self._counting:
            self._inside += 1
            is_full = self._inside > self.room_for
        try:
            if not self.num_failed:
                self.all_have_come.wait(WAIT_S)
            if is_full:
                self.num_failed += 1
                raise FullDeviceError("the device has no memory left")
            super()._examine_once(*arguments)
        finally:
            with self._counting:
                self._inside -= 1


def judged_side_by_side(judge: Judge) -> Iterator[Status]:
    with judge, ThreadPoolExecutor(2) as pool:
        for verdict in pool.map(lambda seed: judge.judge(HONEST.problem, HONEST.candidate, seed=seed), (0, 1)):
            yield verdict.status


def test_whoever_finds_the_device_full_is_judged_when_the_others_have_left():
    judge = CrowdedJudge(room_for=1)
    assert list(judged_side_by_side(judge)) == [Status.CORRECT, Status.CORRECT]
    assert judge.num_failed == 1


def test_a_judgement_with_no_room_of_its_own_fails_and_says_why():
    judge = CrowdedJudge(room_for=0)
    judge.all_have_come = threading.Barrier(1)
    with judge, pytest.raises(FullDeviceError, match="no memory left"):
        judge.judge(HONEST.problem, HONEST.candidate, seed=0)
    assert judge.num_failed == ATTEMPTS


def test_an_error_that_is_kept_keeps_none_of_what_was_computed(monkeypatch: pytest.MonkeyPatch):
    computed: list[weakref.ref[np.ndarray]] = []

    def run(*_: Any) -> None:
        outputs = np.zeros(8)
        computed.append(weakref.ref(outputs))
        raise MemoryError(f"no room beside {outputs.nbytes} bytes")

    monkeypatch.setattr(Examination, "run", run)
    with Judge(PARAMS) as judge, pytest.raises(FullDeviceError, match="no room beside 64 bytes") as kept:
        judge.judge(HONEST.problem, HONEST.candidate, seed=0)
    assert kept.value.__cause__ is not None
    assert [reference() for reference in computed] == [None] * ATTEMPTS


def test_whoever_waits_to_be_alone_is_not_overtaken():
    room, order = Room(), []
    first_is_inside, first_may_leave = threading.Event(), threading.Event()

    def first() -> None:
        with room.shared():
            first_is_inside.set()
            first_may_leave.wait(WAIT_S)
            order.append("first")

    def alone() -> None:
        with room.alone():
            order.append("alone")

    def later() -> None:
        with room.shared():
            order.append("later")

    with ThreadPoolExecutor(3) as pool:
        tasks = [pool.submit(first)]
        assert first_is_inside.wait(WAIT_S)
        tasks.append(pool.submit(alone))
        while not room._num_waiting_to_be_alone:
            threading.Event().wait(0.001)
        tasks.append(pool.submit(later))
        first_may_leave.set()
        for task in tasks:
            task.result(WAIT_S)
    assert order == ["first", "alone", "later"]


def test_those_who_wait_to_be_alone_come_one_after_another():
    room = Room()
    inside, most = 0, 0
    counting = threading.Lock()

    def alone(_: int) -> None:
        nonlocal inside, most
        with room.alone():
            with counting:
                inside += 1
                most = max(most, inside)
            threading.Event().wait(0.01)
            with counting:
                inside -= 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(alone, range(8)))
    assert most == 1


def test_a_judgement_that_fails_alone_makes_way():
    room = Room()
    with pytest.raises(RuntimeError), room.alone():
        raise RuntimeError("whatever it was")
    with room.shared():
        pass
