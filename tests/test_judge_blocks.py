"""Blocks are computed with alike in the host's memory and on a device."""

import sys
import types

import numpy as np
import pytest

from tasks.judge import block_kernels, blocks, equality
from tasks.judge.close_look import CloseLook, compare_closely
from tasks.judge.distributions import DISTRIBUTIONS, domains, transformed
from tasks.judge.wire import TensorSpec, offsets
from tests.device_arrays import DeviceArray, module_like_cupy

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
    assert set(places) == {block_kernels.SPEC.num_bytes, offsets(block_kernels.SEVERAL)[1]}


def test_everything_that_is_computed_with_blocks_keeps_to_what_arrays_of_a_device_can_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", module_like_cupy())
    block_kernels.compile_all(DeviceArray)


def test_arrays_of_a_device_never_become_those_of_the_host_unasked() -> None:
    there = DeviceArray(TRUTH)
    for convert in (np.asarray, np.ascontiguousarray, lambda array: array + TRUTH):
        with pytest.raises(TypeError):
            convert(there)
    assert not blocks.is_on_host(there)
    assert blocks.on_host(there) == pytest.approx(TRUTH)


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
    there, here = (values[np.isfinite(values)] for values in moved)
    assert there.size == pytest.approx(here.size, rel=0.05)
    means = [[float(abs(values).mean()), float(values.std()), float(values.max())] for values in (there, here)]
    assert means[1] == pytest.approx(means[0], rel=0.05)


class _Pool:
    """What CuPy's pool is to more_memory."""

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = self.limit = num_bytes
        self.kept = 1
        self.set_limit(fraction=blocks.DEVICE_SHARE)

    def get_limit(self) -> int:
        return self.limit

    def set_limit(self, *, size: int | None = None, fraction: float = 0.0) -> None:
        self.limit = int(self.num_bytes * fraction) if size is None else size

    def free_all_blocks(self) -> None:
        self.kept = 0


def test_blocks_may_take_more_of_a_device_where_nobody_else_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = _Pool(100)
    monkeypatch.setattr(blocks, "has_cupy", lambda: True)
    monkeypatch.setattr(blocks, "_cupy_on", lambda index: types.SimpleNamespace(get_default_memory_pool=lambda: pool))
    limits = [pool.limit]
    with blocks.more_memory(0):
        limits.append(pool.limit)
        pool.kept = 1
        with blocks.more_memory(0):
            assert not pool.kept
            limits.append(pool.limit)
        limits.append(pool.limit)
        pool.kept = 1
    assert not pool.kept
    assert [*limits, pool.limit] == [15, 60, 60, 60, 15]


@pytest.mark.gpu
@pytest.mark.skipif(not blocks.has_cupy(), reason="needs CuPy")
def test_no_reduction_is_compiled_with_headers_that_take_seconds() -> None:
    accelerators = pytest.importorskip("cupy")._core.get_reduction_accelerators()
    assert accelerators == []
