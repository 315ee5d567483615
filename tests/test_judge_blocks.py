"""Blocks are computed with alike in the host's memory and on a device."""

import numpy as np
import pytest

from tasks.judge import block_kernels, blocks, equality
from tasks.judge.close_look import CloseLook, compare_closely
from tasks.judge.distributions import DISTRIBUTIONS, domains, transformed
from tasks.judge.wire import TensorSpec

SPEC = TensorSpec.from_json(["float32", [300, 70]])
RNG = np.random.default_rng(0)
EXACT = RNG.standard_normal(SPEC.num_items)
TRUTH = EXACT.astype(np.float32)


def cuda_devices() -> int:
    torch = pytest.importorskip("torch")
    return int(torch.cuda.device_count())


def test_everything_that_is_computed_with_blocks_runs_before_anybody_waits_for_it() -> None:
    places = []
    block_kernels.compile_all(lambda block: places.append(block.size) or block)
    assert places
    assert set(places) == {block_kernels.SPEC.num_bytes}


@pytest.mark.gpu
@pytest.mark.skipif(not blocks.has_cupy(), reason="needs CuPy")
@pytest.mark.parametrize("error", [0.0, 1e-7, 1e-5, 1e-2, np.nan, np.inf])
def test_a_device_finds_the_errors_that_the_host_finds(error: float) -> None:
    if not cuda_devices():
        pytest.skip("needs a CUDA device")
    ours = TRUTH.copy()
    ours[::7] += error
    exact = EXACT.view(np.uint8)
    on_host = [ours.view(np.uint8), TRUTH.view(np.uint8), exact, (EXACT * (1 + 1e-6)).view(np.uint8)]
    found = []
    for one, truth, double, nudged in (on_host, [blocks.copied_to_device(block, 0) for block in on_host]):
        look = CloseLook(double, [SPEC])
        look.add(nudged)
        found.append(
            [
                equality.compare(one, truth, [SPEC], [1e-7]).max_error,
                equality.rows_agree(one, truth, [SPEC]),
                equality.differ_grossly(one, truth, [SPEC]),
                *equality.own_errors(truth, double, [SPEC]),
                compare_closely(one, truth, [SPEC], look, by_row=True, by_value=True).max_error,
            ]
        )
    assert found[1] == pytest.approx(found[0], rel=1e-4, nan_ok=True)


@pytest.mark.gpu
@pytest.mark.skipif(not blocks.has_cupy(), reason="needs CuPy")
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_device_moves_inputs_as_the_host_does(name: str) -> None:
    if not cuda_devices():
        pytest.skip("needs a CUDA device")
    drawn = [RNG.standard_normal(SPEC.num_items).astype(np.float32).view(np.uint8) for _ in range(2)]
    where = domains(drawn, [SPEC])
    placed = blocks.copied_to_device(drawn[0], 0)
    moved = [
        blocks.on_host(transformed(block, [SPEC], where, name, np.random.default_rng(1))).view(np.float32)
        for block in (drawn[0], placed)
    ]
    means = [[float(abs(values).mean()), float(values.std()), float(values.max())] for values in moved]
    assert means[1] == pytest.approx(means[0], rel=0.05)
