"""A program that may compile its kernels for a minute keeps nobody waiting for the device."""

import contextlib
import os
import time
from collections.abc import Iterator

import numpy as np
import pytest

from tasks.judge.fork_server import ForkServer
from tasks.judge.reference import LAYOUT, Reference
from tests.judge_builders import problem

AT_LARGE, WAITS, ALONE = (False, False), (True, False), (True, True)


class NotedLease:
    """In the place of a GPU's lease: lets everybody through, and notes who is to wait and who finds cold caches."""

    def __init__(self) -> None:
        self.turns: list[tuple[bool, bool]] = []
        self.events: list[str] = []
        self.busy_s = 0.0

    @contextlib.contextmanager
    def turn(self, _: int, *, waits: bool) -> Iterator[float]:
        self.turns.append((waits, False))
        self.events.append("begins")
        yield 0.0
        self.events.append("ends")

    def flush(self) -> None:
        self.turns[-1] = (self.turns[-1][0], True)
        self.events.append("flushed")

    def await_quiet(self) -> float:
        time.sleep(self.busy_s)
        return 1e3 * self.busy_s


@pytest.fixture
def lease() -> NotedLease:
    return NotedLease()


@pytest.fixture
def reference(fork_server: ForkServer, lease: NotedLease, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reference]:
    monkeypatch.setattr(fork_server, "_lease", lease)
    core = min(os.sched_getaffinity(0))
    worker = fork_server.spawn(arena_bytes=LAYOUT.num_bytes, core=core, uid=None, memory_bytes=2 << 30, cpu_s=60)
    yield Reference(problem("bfloat16_linear"), worker)
    worker.end()


def test_a_model_is_built_beside_others_the_first_time_only(reference: Reference, lease: NotedLease) -> None:
    lease.turns.clear()
    reference.weights([0, 1])
    built, saved, built_again, saved_again, told_ties = lease.turns
    assert built == AT_LARGE
    assert saved == built_again == saved_again == told_ties == WAITS


def test_a_model_is_called_beside_others_the_first_time_only(reference: Reference, lease: NotedLease) -> None:
    reference.weights([0])
    inputs = reference.draw(0, carries_numbers=False)
    reference.expect_inputs(inputs)
    lease.turns.clear()
    for _ in range(3):
        reference.call(inputs.block)
    assert lease.turns == [AT_LARGE, ALONE, ALONE]


def test_inputs_are_laid_in_within_the_turn_and_before_the_caches_are_flushed(
    reference: Reference, lease: NotedLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference.weights([0])
    inputs = reference.draw(0, carries_numbers=False)
    reference.expect_inputs(inputs)
    reference.call(inputs.block)
    arena = reference.worker.arena
    written = arena.write

    def noted(at: int, block: np.ndarray) -> None:
        lease.events.append("laid in")
        written(at, block)

    monkeypatch.setattr(arena, "write", noted)
    lease.events.clear()
    reference.call(inputs.block)
    assert lease.events == ["begins", "laid in", "flushed", "ends"]


def test_time_for_which_others_keep_the_device_busy_is_not_the_workers(reference: Reference, lease: NotedLease) -> None:
    reference.weights([0])
    inputs = reference.draw(0, carries_numbers=False)
    reference.expect_inputs(inputs)
    reference.call(inputs.block)
    lease.busy_s = 1.0
    deadline = time.monotonic() + 0.9
    for _ in range(2):
        reference._program.call(inputs.block, deadline)
