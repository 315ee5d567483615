"""A judgement that finds the device full beside others is done once more alone, and fails only if that fails too."""

import contextlib
import os
import socket
import subprocess
import threading
import time
import types
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.errors import FullDeviceError, WorkerError
from tasks.judge.cuda import ALONE_SHARE, MEMORY_SHARE
from tasks.judge.evidence import RefusedError
from tasks.judge.fork_server import ForkServer
from tasks.judge.judge import FULL_REMEDY, Judge
from tasks.judge.processes import WorkerProcess
from tasks.judge.referee import Examination
from tasks.judge.room import Room
from tasks.judge.verdict import Status
from tasks.judge.wire import Arena
from tests.judge_builders import KERNELS, PARAMS, RIGHT, kernel

WAIT_S = 60.0
HONEST = kernel(KERNELS / "honest" / "in_place.py")


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(PARAMS) as judge:
        yield judge


class CrowdedJudge(Judge):
    """A real judge on whose device there is room for so many at once; knows how many were there when it was full."""

    def __init__(self, room_for: int, *, first_error: Exception | None = None) -> None:
        super().__init__(PARAMS)
        self.room_for = room_for
        self.all_have_come = threading.Barrier(2)
        self.inside_when_full: list[int] = []
        self._first_error = first_error
        self._inside = 0
        self._counting = threading.Lock()

    def _examine_once(self, *arguments: Any) -> None:
        if self._first_error is not None:
            error, self._first_error = self._first_error, None
            raise error
        with self._counting:
            self._inside += 1
            inside = self._inside
        try:
            if not self.inside_when_full:
                self.all_have_come.wait(WAIT_S)
            if inside > self.room_for:
                self.inside_when_full.append(inside)
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
    assert set(judged_side_by_side(judge)) <= set(RIGHT)
    assert judge.inside_when_full == [2]


def test_a_device_that_is_full_after_another_failure_is_one_that_is_full():
    judge = CrowdedJudge(room_for=1, first_error=WorkerError("a worker has gone"))
    assert set(judged_side_by_side(judge)) <= set(RIGHT)
    assert judge.inside_when_full == [2]


def test_a_judgement_with_no_room_of_its_own_fails_once_it_was_alone_and_names_the_remedy():
    judge = CrowdedJudge(room_for=0)
    with judge, ThreadPoolExecutor(2) as pool:
        verdicts = [pool.submit(judge.judge, HONEST.problem, HONEST.candidate, seed=seed) for seed in (0, 1)]
        for verdict in verdicts:
            error = verdict.exception(WAIT_S)
            assert isinstance(error, FullDeviceError)
            assert str(error) == f"the device has no memory left; {FULL_REMEDY}"
    assert sorted(judge.inside_when_full) == [1, 1, 1, 2]  # each of the two alone at last


@pytest.mark.parametrize(
    ("on_device", "words", "kind"),
    [
        (True, "cuda:0 has no memory left: cuDevicePrimaryCtxRetain failed: out of memory (2)", FullDeviceError),
        (True, "cuda:0 cannot be used: no CUDA-capable device is detected (100)", WorkerError),
        (False, "out of memory", WorkerError),
    ],
    ids=["a full device", "another failure", "on a processor"],
)
def test_a_worker_that_does_not_start_says_whether_its_device_is_full(
    on_device: bool, words: str, kind: type[Exception], tmp_path: Path
):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    log_read, log_write = os.pipe()
    life_read, life_write = os.pipe()
    lease = types.SimpleNamespace() if on_device else None
    worker = WorkerProcess(ours, log_read, life_read, Arena(1 << 20), tmp_path, lease, NobodyElse())  # type: ignore[arg-type]
    with subprocess.Popen(["true"]) as ended:
        os.write(life_write, f"{ended.pid} {ended.pid}".encode())
        os.write(log_write, words.encode())
        for end in (log_write, life_write):
            os.close(end)
        theirs.close()
        with pytest.raises(WorkerError, match="did not start") as failure:
            worker.await_start()
    assert type(failure.value) is kind
    assert (words in str(failure.value)) == (kind is WorkerError)


class NobodyElse:
    """In place of the limits on all that a worker starts: this one starts nothing."""

    def begin(self, walls: list[str]) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("on_device", "detail", "status", "times"),
    [
        (True, "CUDA out of memory", Status.CRASHED, 2),
        (True, "no kernel image is available", Status.CRASHED, 1),
        (True, "wrong, and it says out of memory", Status.WRONG_OUTPUT, 1),
        (False, "out of memory", Status.CRASHED, 1),
    ],
    ids=["beside others on a device", "another failure", "another status", "on a processor"],
)
def test_a_candidate_without_memory_beside_others_is_judged_once_more(
    on_device: bool, detail: str, status: Status, times: int, judge: Judge, monkeypatch: pytest.MonkeyPatch
):
    judged = []

    def refuse(*_: Any) -> None:
        judged.append(detail)
        raise RefusedError(status, detail)

    monkeypatch.setattr(judge, "_examine_once", refuse)
    monkeypatch.setattr(judge, "_device", types.SimpleNamespace(index=0) if on_device else None)
    verdict = judge.judge(HONEST.problem, HONEST.candidate, seed=0)
    assert (verdict.status, verdict.detail) == (status, detail)
    assert len(judged) == times


@pytest.mark.parametrize("error", [MemoryError, FullDeviceError])
def test_an_error_that_is_kept_keeps_none_of_what_was_computed(
    error: type[Exception], judge: Judge, monkeypatch: pytest.MonkeyPatch
):
    computed: list[weakref.ref[Any]] = []

    def run(examination: Examination, *_: Any) -> None:
        outputs = np.zeros(8)
        computed.extend([weakref.ref(outputs), weakref.ref(examination._study.pool)])
        raise error(f"no room beside {outputs.nbytes} bytes")

    monkeypatch.setattr(Examination, "run", run)
    with pytest.raises(FullDeviceError, match="no room beside 64 bytes") as kept:
        judge.judge(HONEST.problem, HONEST.candidate, seed=0)
    assert kept.value.__traceback__ is not None
    assert [reference() for reference in computed] == [None] * 4


def test_a_program_may_take_more_of_the_device_where_nobody_else_is_judged(monkeypatch: pytest.MonkeyPatch):
    shares: list[set[float]] = [set()]
    spawn, examine_once = ForkServer.spawn, Judge._examine_once

    def spawn_and_note(server: ForkServer, **arguments: Any) -> WorkerProcess:
        shares[-1].add(arguments.get("memory_share", MEMORY_SHARE))
        return spawn(server, **arguments)

    def find_it_full_once(judge: Judge, *arguments: Any) -> None:
        shares.append(set())
        is_first = len(shares) == 2
        with contextlib.suppress(RefusedError) if is_first else contextlib.nullcontext():  # unstable on a busy machine
            examine_once(judge, *arguments)
        if is_first:
            raise FullDeviceError("CUDA out of memory")

    monkeypatch.setattr(ForkServer, "spawn", spawn_and_note)
    monkeypatch.setattr(Judge, "_examine_once", find_it_full_once)
    with Judge(PARAMS) as judge:
        assert judge.judge(HONEST.problem, HONEST.candidate, seed=0).status in RIGHT
        assert judge.judge(HONEST.problem, HONEST.candidate, seed=1).status in RIGHT
    # To begin with, the judge tries its walls; a study made alone is not kept.
    assert shares == [{MEMORY_SHARE}, {MEMORY_SHARE}, {ALONE_SHARE}, {MEMORY_SHARE}]


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
        for number, enter in enumerate((alone, later), start=1):
            tasks.append(pool.submit(enter))
            await_waiting(room, number)
        assert order == []
        first_may_leave.set()
        for task in tasks:
            task.result(WAIT_S)
    assert order == ["first", "alone", "later"]


def await_waiting(room: Room, number: int) -> None:
    """Until so many threads wait to be let in."""
    deadline = time.monotonic() + WAIT_S
    while len(room._changed._waiters) < number:  # type: ignore[attr-defined]
        assert time.monotonic() < deadline, "they do not wait"
        time.sleep(0.001)


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
