"""A reference that takes long spares its candidates no more than a few kinds of inputs, and nobody knows which."""

import os
from collections.abc import Callable, Iterator

import pytest

from tasks.judge import study as study_module
from tasks.judge.distributions import DISTRIBUTIONS, NUM_TELLING
from tasks.judge.fork_server import ForkServer
from tasks.judge.processes import WorkerProcess
from tasks.judge.reference import LAYOUT
from tasks.judge.study import Study
from tests.judge_builders import problem_of

REFERENCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y, mask, lengths):
        return (torch.tanh(x) * y * mask + x * (y + 2)) * lengths[:, None]


def get_inputs():
    lengths = torch.randint(2, 9, (64,))
    return [torch.randn(64, 64), torch.rand(64, 64), torch.ones(64, 64).tril(), lengths]


def get_init_inputs():
    return []
"""
MEMORY_BYTES = 8 << 30


@pytest.fixture
def studied(fork_server: ForkServer) -> Iterator[Callable[[], Study]]:
    workers: list[WorkerProcess] = []

    def study() -> Study:
        core = min(os.sched_getaffinity(0))
        workers.append(
            fork_server.spawn(arena_bytes=LAYOUT.num_bytes, core=core, uid=None, memory_bytes=MEMORY_BYTES, cpu_s=60)
        )
        return Study(problem_of(REFERENCE), workers[-1])

    yield study
    for worker in workers:
        worker.end()


def test_however_long_a_call_takes_the_most_telling_kinds_come(
    studied: Callable[[], Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = set(studied().distributions)
    telling = {name for name in DISTRIBUTIONS[:NUM_TELLING] if name in every}
    assert {"one_sided", "unlike_constants", "signs", "large", "outliers", "raised", "other_whole"} == telling
    monkeypatch.setattr(study_module, "STUDY_MS", 0.0)  # as if the first call had taken all of it
    left_out = []
    for _ in range(7):
        found = studied().distributions
        assert telling <= set(found)
        assert len(found) == study_module.LEAST_KINDS < len(every)
        left_out.append(every - set(found))
    assert any(names != left_out[0] for names in left_out)
