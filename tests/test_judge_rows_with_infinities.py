"""An infinity in a row, or what is not a number, hides nothing about the row's other values."""

import numpy as np
import pytest

from tasks.judge.close_look import CloseLook, compare_closely
from tasks.judge.equality import differ_grossly, rows_agree
from tasks.judge.wire import TensorSpec

RNG = np.random.default_rng(0)
SPEC = TensorSpec.from_json(["float32", [64, 64]])
DOUBLES = TensorSpec.from_json(["float64", [64, 64]])
SCORES = RNG.standard_normal((64, 64)).astype(np.float32)
SCORES[-1] *= 1e6  # so that all other rows are nothing on the scale of the whole
FEW_BITS = (SCORES.view(np.uint32) & 0xFFFF0000).view(np.float32)
FEW_BITS[-1] = SCORES[-1]
OTHER_ORDER = SCORES * np.float32(1 + 2e-7)


def masked(scores: np.ndarray, value: float) -> np.ndarray:
    return np.where(np.triu(np.ones(scores.shape, dtype=bool), 1), scores.dtype.type(value), scores)


def as_block(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan, 0.0])
def test_each_row_is_held_to_the_scale_of_its_finite_values(value: float) -> None:
    truth = as_block(masked(SCORES, value))
    assert rows_agree(truth, truth, [SPEC])
    assert rows_agree(as_block(masked(OTHER_ORDER, value)), truth, [SPEC])
    assert not rows_agree(as_block(masked(FEW_BITS, value)), truth, [SPEC])


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_rows_whose_squares_are_too_small_or_too_large_have_a_scale(size: float) -> None:
    truth = SCORES.astype(np.float64) * size
    exact = as_block(truth)
    other_order = truth + 1e-15 * np.sqrt(np.square(SCORES, dtype=np.float64).mean(axis=1, keepdims=True)) * size
    assert rows_agree(as_block(other_order), exact, [DOUBLES])
    assert not rows_agree(as_block(FEW_BITS * (size * np.ones(1))), exact, [DOUBLES])


def test_values_off_by_a_good_part_of_themselves_are_counted_among_the_finite_ones() -> None:
    ours, theirs = (np.full((64, 64), -np.inf, dtype=np.float32) for _ in range(2))
    theirs[:, :4] = SCORES[:, :4]
    ours[:, :4] = SCORES[:, :4] * np.float32(1.5)
    assert differ_grossly(as_block(ours), as_block(theirs), [SPEC])
    ours[4:] = theirs[4:]
    assert not differ_grossly(as_block(ours), as_block(theirs), [SPEC])


def test_a_close_look_takes_masked_values_for_nothing_that_is_right() -> None:
    theirs = np.full((64, 64), -np.inf, dtype=np.float32)
    theirs[:, :4] = np.where(np.arange(4) == 0, 1e6, 1e-6) * (1 + RNG.random((64, 4)))
    look = CloseLook(as_block(theirs.astype(np.float64)), [SPEC])
    ours = theirs.copy()
    ours[:, 1:4] *= np.float32(1.5)
    found = [
        compare_closely(as_block(ours), as_block(theirs), [SPEC], look, by_row=True, by_value=by_value)
        for by_value in (False, True)
    ]
    assert [each.is_equal for each in found] == [True, False]
    assert "75% of 256 values" in found[1].detail
