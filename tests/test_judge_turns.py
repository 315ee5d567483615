"""A program that may compile its kernels for a minute keeps nobody waiting for the device."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from tasks.judge.fork_server import ForkServer
from tasks.judge.lease import Lease
from tasks.judge.processes import WorkerProcess
from tasks.judge.reference import LAYOUT, Reference
from tests.judge_builders import problem, problem_of

COUNTS_CORES = """
import os
import subprocess
import threading
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.asked, self.answered, self.count = threading.Event(), threading.Event(), 0
        threading.Thread(target=self.answer, daemon=True).start()
        self.child = subprocess.Popen(["sleep", "60"])

    def answer(self):
        while self.asked.wait():
            self.count = len(os.sched_getaffinity(0))
            self.asked.clear()
            self.answered.set()

    def forward(self, x):
        self.asked.set()
        self.answered.wait()
        self.answered.clear()
        counts = len(os.sched_getaffinity(0)), self.count, len(os.sched_getaffinity(self.child.pid))
        return x + torch.tensor(counts)

def get_inputs():
    return [torch.zeros(3)]

def get_init_inputs():
    return []
"""
AT_LARGE, WAITS, ALONE = (False, False), (True, False), (True, True)


class NotedLease:
    """In the place of a GPU's lease: lets everybody through, and notes who is to wait and who finds cold caches."""

    def __init__(self) -> None:
        self.turns: list[tuple[bool, bool]] = []

    @contextlib.contextmanager
    def turn(self, _: int, *, waits: bool, flushes: bool) -> Iterator[float]:
        self.turns.append((waits, flushes))
        yield 0.0

    def await_quiet(self) -> float:
        return 0.0


@pytest.fixture
def lease() -> NotedLease:
    return NotedLease()


@pytest.fixture
def worker(tmp_path: Path, lease: NotedLease) -> Iterator[WorkerProcess]:
    server = ForkServer(tmp_path, lease=cast(Lease, lease))
    cores = sorted(os.sched_getaffinity(0))[:2]
    worker = server.spawn(arena_bytes=LAYOUT.num_bytes, cores=cores, uid=None, memory_bytes=2 << 30, cpu_s=60)
    yield worker
    worker.end()
    server.close()


@pytest.fixture
def reference(worker: WorkerProcess) -> Reference:
    return Reference(problem("bfloat16_linear"), worker)


def test_a_model_is_built_beside_others_the_first_time_only(reference: Reference, lease: NotedLease) -> None:
    lease.turns.clear()
    reference.weights([0, 1])
    built, saved, built_again, saved_again = lease.turns
    assert built == AT_LARGE
    assert saved == built_again == saved_again == WAITS


def test_a_model_is_called_beside_others_the_first_time_only(reference: Reference, lease: NotedLease) -> None:
    reference.weights([0])
    inputs = reference.draw(0, carries_numbers=False)
    reference.expect_inputs(inputs)
    lease.turns.clear()
    for _ in range(3):
        reference.call(inputs.block)
    assert lease.turns == [AT_LARGE, ALONE, ALONE]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_what_is_timed_has_one_core_and_what_is_built_has_all(worker: WorkerProcess) -> None:
    reference = Reference(problem_of(COUNTS_CORES), worker)
    reference.weights([0])
    inputs = reference.draw(0, carries_numbers=False)
    reference.expect_inputs(inputs)
    counts = [reference.call(inputs.block)[1].view(np.float32)[:3].tolist() for _ in range(2)]
    assert counts == [[2, 1, 1], [1, 1, 1]]  # thread and child were gathered after the constructor
