"""What is next to nothing in single precision is a number like any other in double."""

import numpy as np
import pytest

from tasks.judge.close_look import CloseLook, compare_closely
from tasks.judge.equality import compare, differ_grossly, errors_at_once, rows_agree
from tasks.judge.wire import TensorSpec

VALUES = 1.0 + np.random.default_rng(0).random((32, 32))


def spec(dtype: str) -> TensorSpec:
    return TensorSpec.from_json([dtype, [32, 16] if dtype == "complex128" else [32, 32]])


def as_block(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("size", [1e-50, 1e-170, 1e-290])
@pytest.mark.parametrize("factor", [0.0, 1 + 1e-9, 2.0])
def test_tiny_doubles_must_be_right(size: float, factor: float, dtype: str) -> None:
    specs = [spec(dtype)]
    truth, right, wrong = (as_block(values * size) for values in (VALUES, VALUES * (1 + 1e-15), VALUES * factor))
    assert compare(right, truth, specs, [0.0]).is_equal
    assert not compare(wrong, truth, specs, [0.0]).is_equal
    look = CloseLook(truth, specs)
    assert compare_closely(right, truth, specs, look, by_row=True, by_value=True).is_equal
    assert not compare_closely(wrong, truth, specs, look, by_row=True, by_value=True).is_equal
    assert errors_at_once(np.stack([wrong, truth]), np.stack([truth, truth]), specs, [0.0])[0] > 1


@pytest.mark.parametrize("size", [1e-50, 1e-170, 1e-290])
def test_tiny_rows_and_tiny_values_must_be_right(size: float) -> None:
    specs, truth = [spec("float64")], VALUES.copy()
    truth[1:] *= size
    wrong, right = truth.copy(), truth * (1 + 1e-15)
    wrong[1:] = 0.0
    assert compare(as_block(wrong), as_block(truth), specs, [0.0]).is_equal  # on the scale of the whole
    assert rows_agree(as_block(right), as_block(truth), specs)
    assert not rows_agree(as_block(wrong), as_block(truth), specs)
    assert not differ_grossly(as_block(right), as_block(truth), specs)
    assert differ_grossly(as_block(wrong), as_block(truth), specs)


def test_what_single_precision_has_no_exact_numbers_for_may_be_anything() -> None:
    specs, truth = [spec("float32")], (VALUES * 1e-40).astype(np.float32)
    zeros = np.zeros_like(truth)
    assert compare(as_block(zeros), as_block(truth), specs, [0.0]).is_equal
    assert rows_agree(as_block(zeros), as_block(truth), specs)
    assert not differ_grossly(as_block(zeros), as_block(truth), specs)
