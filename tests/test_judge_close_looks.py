"""Close looks at outputs: as many as it takes, and whatever the reference cannot do in double precision."""

import os
import random
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tasks.errors import WorkerError
from tasks.judge import equality
from tasks.judge.close_look import CloseLook, compare_closely
from tasks.judge.equality import as_array, put_array, widened
from tasks.judge.fork_server import ForkServer
from tasks.judge.reference import LAYOUT
from tasks.judge.study import Study
from tasks.judge.wire import TensorSpec, offsets
from tasks.problems.problem import Problem
from tests.judge_builders import problem, problem_of

MEMORY_BYTES = 8 << 30
GROWTH_BYTES = 16 << 20
LOOKS = 20
ENDS_AT_ONE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        if x.dtype == torch.float64 and (x > 1).any():
            raise ValueError("a share is at most 1")
        return torch.round(x * 8) / 8


def get_inputs():
    x = torch.rand(64, 256)
    x[:, 0] = 1.0
    return [x]
"""


@pytest.fixture
def studied(fork_server: ForkServer) -> Iterator[Callable[[Problem], Study]]:
    core = min(os.sched_getaffinity(0))
    worker = fork_server.spawn(arena_bytes=LAYOUT.num_bytes, core=core, uid=None, memory_bytes=MEMORY_BYTES, cpu_s=60)
    yield lambda asked: Study(asked, worker)
    worker.end()


def resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) << 10


def look(study: Study) -> None:
    """Look closely at the right answer."""
    block = next(study.fresh_inputs(random.Random(0)))
    truth = study.outputs(block)
    weights = study.seeds[0], study.weights.states[study.seeds[0]]
    found = study.compare_closely(truth, truth, block, distribution="plain", weights=weights)
    assert found is not None
    assert found.is_equal


def test_a_device_without_memory_for_a_look_decides_nothing(studied: Callable[[Problem], Study]) -> None:
    full = ENDS_AT_ONE.replace('ValueError("a share is at most 1")', 'RuntimeError("CUDA out of memory")')
    with pytest.raises(WorkerError, match="could not be run in double precision"):
        look(studied(problem_of(full)))


def test_looking_again_and_again_takes_no_more_memory(studied: Callable[[Problem], Study]) -> None:
    study = studied(problem("fake_quantize"))  # whose outputs are in steps, so that many answers are looked at
    sizes = []
    for _ in range(1 + LOOKS):
        look(study)
        sizes.append(resident_bytes(study.worker.pid))
    assert sizes[-1] - sizes[0] < GROWTH_BYTES  # outputs that were kept would be 60 MB


def test_a_reference_that_refuses_nudged_inputs_is_looked_at_without_them(studied: Callable[[Problem], Study]) -> None:
    look(studied(problem_of(ENDS_AT_ONE)))


def test_a_look_keeps_no_nudged_outputs_of_floats():
    specs = [TensorSpec.from_json(["float32", [64]]), TensorSpec.from_json(["int64", [8]])]
    exact = np.concatenate([np.zeros(64).view(np.uint8), np.zeros(8, dtype=np.int64).view(np.uint8)])
    look = CloseLook(exact, specs)
    kept = []
    for size in (-3.0, 1.0, 2.0):
        nudged = exact.copy()
        nudged[:512].view(np.float64)[:2] = size, np.inf
        nudged[512:].view(np.int64)[:] = int(size)
        look.add(nudged)
        kept.append(weakref.ref(nudged))
        del nudged
    assert not any(reference() is not None for reference in kept)
    assert look.moved[0] is not None
    assert look.moved[0][:3].tolist() == [3.0, np.inf, 0.0]
    assert [int(values[0]) for values in look.others[1]] == [-3, 1, 2]


@pytest.mark.parametrize("error", [0.0, 1e-6, 3e-5, 0.02, np.nan], ids=str)
@pytest.mark.parametrize(("by_row", "by_value"), [(True, True), (True, False), (False, True)])
def test_outputs_compared_in_pieces_are_as_equal_as_in_one(
    error: float, by_row: bool, by_value: bool, monkeypatch: pytest.MonkeyPatch
):
    specs = [TensorSpec.from_json(["float32", [50, 20]]), TensorSpec.from_json(["float32", [7]])]
    values = [np.random.default_rng(0).standard_normal(spec.num_items) for spec in specs]
    values[0][40:80] *= 1e-3  # rows with a scale of their own
    truth, exact = np.zeros(offsets(specs)[1], np.uint8), np.zeros(offsets(widened(specs))[1], np.uint8)
    for spec, at, wide, wide_at, drawn in zip(
        specs, offsets(specs)[0], widened(specs), offsets(widened(specs))[0], values, strict=True
    ):
        put_array(truth, spec, at, drawn)
        put_array(exact, wide, wide_at, drawn)
    actual = truth.copy()
    as_array(actual, specs[0], 0)[30:900:3] *= 1 + error
    look = CloseLook(exact, specs)
    look.add(exact)
    found = []
    for items in (1 << 17, 64, 1):
        monkeypatch.setattr(equality, "PIECE_ITEMS", items)
        found.append(compare_closely(actual, truth, specs, look, by_row=by_row, by_value=by_value))
    assert found[0] == found[1] == found[2]
    assert found[0].is_equal == (error in (0.0, 1e-6))
