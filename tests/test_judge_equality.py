"""Single precision passes in whatever order it is computed; less precision, and luck, do not."""

import numpy as np
import pytest

from tasks.judge.equality import Comparison, compare, form_mismatch, own_errors
from tasks.judge.wire import TensorSpec

RNG = np.random.default_rng(0)
LEFT = RNG.standard_normal((64, 512)).astype(np.float32)
RIGHT = RNG.standard_normal((512, 64)).astype(np.float32)
PRODUCT = LEFT @ RIGHT
UNIFORM = RNG.random((64, 512)).astype(np.float32)


def spec(values: np.ndarray) -> TensorSpec:
    return TensorSpec.from_json([str(values.dtype), list(values.shape)])


def compared(actual: np.ndarray, truth: np.ndarray, own_error: float = 0.0) -> Comparison:
    blocks = [np.ascontiguousarray(values).reshape(-1).view(np.uint8) for values in (actual, truth)]
    return compare(*blocks, [spec(truth)], [own_error])


def half(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float16).astype(np.float32)


def ten_bits(values: np.ndarray) -> np.ndarray:
    return (((values.view(np.int32) + 0x1000) >> 13) << 13).view(np.float32)


def summed_plainly(values: np.ndarray) -> np.ndarray:
    return np.cumsum(values, axis=1, dtype=np.float32)[:, -1].copy()


@pytest.mark.parametrize(
    ("actual", "truth"),
    [
        pytest.param(PRODUCT, PRODUCT, id="identical"),
        pytest.param((LEFT[:, ::-1] @ RIGHT[::-1]), PRODUCT, id="other order"),
        pytest.param(LEFT[:, :256] @ RIGHT[:256] + LEFT[:, 256:] @ RIGHT[256:], PRODUCT, id="in two parts"),
        pytest.param(summed_plainly(UNIFORM), UNIFORM.sum(axis=1), id="one running sum"),
        pytest.param(np.exp2(LEFT * np.float32(1.442695)), np.exp(LEFT), id="exp2 for exp"),
        pytest.param(np.array([np.nan, np.inf, 1.0], "f"), np.array([np.nan, np.inf, 1.0], "f"), id="same odd values"),
        pytest.param(np.zeros(8, "f"), np.zeros(8, "f"), id="zeros"),
        pytest.param(LEFT * np.float32(1e-30) * 1, LEFT * np.float32(1e-30), id="tiny"),
        pytest.param(LEFT * np.float32(1e37), LEFT * np.float32(1e37), id="huge"),
    ],
)
def test_equal(actual: np.ndarray, truth: np.ndarray) -> None:
    found = compared(actual, truth)
    assert found.is_equal, found.detail
    assert 0.0 <= found.max_error <= 1.0


@pytest.mark.parametrize(
    ("actual", "truth"),
    [
        pytest.param(half(LEFT) @ half(RIGHT), PRODUCT, id="half precision operands"),
        pytest.param(ten_bits(LEFT) @ ten_bits(RIGHT), PRODUCT, id="tf32 operands"),
        pytest.param(np.zeros_like(PRODUCT), PRODUCT, id="zeros"),
        pytest.param(np.full_like(PRODUCT, np.nan), PRODUCT, id="not a number"),
        pytest.param(np.zeros_like(PRODUCT), PRODUCT * np.float32(1e-9), id="zeros for small numbers"),
        pytest.param(np.zeros(3, "f"), np.array([0.0, np.inf, 0.0], "f"), id="finite for infinite"),
        pytest.param(-np.full(3, np.inf, "f"), np.full(3, np.inf, "f"), id="wrong infinity"),
        pytest.param(np.array([1, 2, 4]), np.array([1, 2, 3]), id="integers"),
        pytest.param(half(LEFT) * np.float32(1e37), LEFT * np.float32(1e37), id="huge"),
    ],
)
def test_different(actual: np.ndarray, truth: np.ndarray) -> None:
    found = compared(actual, truth)
    assert not found.is_equal
    assert found.detail


def test_a_reference_that_is_inexact_itself_allows_more() -> None:
    off = PRODUCT * np.float32(1 + 1e-4)
    assert not compared(off, PRODUCT).is_equal
    assert compared(off, PRODUCT, own_error=1e-4).is_equal


def test_the_own_error_is_a_share_of_the_scale() -> None:
    double = RNG.standard_normal(1000)
    single = (double + 1e-3).astype(np.float32)
    found = own_errors(single.view(np.uint8), double.view(np.uint8), [spec(single)])
    assert found[0] == pytest.approx(1e-3, rel=0.1)


@pytest.mark.parametrize(
    ("forms", "words"),
    [
        ([["float32", [2, 3]]], ""),
        ([], "0 outputs"),
        ([["float32", [3, 2]]], "shape [3, 2]"),
        ([["float64", [2, 3]]], "float64"),
        ([["float32", [2, 3]], ["float32", [1]]], "2 outputs"),
    ],
)
def test_the_form_must_be_the_same(forms: list[list[object]], words: str) -> None:
    found = form_mismatch([TensorSpec.from_json(form) for form in forms], [TensorSpec.from_json(["float32", [2, 3]])])
    assert words in found
    assert bool(found) == bool(words)
