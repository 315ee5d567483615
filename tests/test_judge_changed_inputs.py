"""An input that a reference writes to has to be left as it leaves it, also where little changes."""

import numpy as np
import pytest

from tasks.judge.changed_inputs import change_mismatch
from tasks.judge.wire import TensorSpec

FLOATS = TensorSpec.from_json(["float32", [1000]])
COUNTS = TensorSpec.from_json(["int64", [1000]])
BEFORE = np.random.default_rng(0).uniform(1, 2, 1000).astype(np.float32)
STEP = np.random.default_rng(1).uniform(0.5, 1, 1000).astype(np.float32)


def mismatch(ours: np.ndarray, theirs: np.ndarray, before: np.ndarray, spec: TensorSpec = FLOATS) -> str:
    return change_mismatch(*(values.view(np.uint8) for values in (ours, theirs, before)), spec)


def put(values: np.ndarray, place: int, value: float) -> np.ndarray:
    changed = values.copy()
    changed[place] = value
    return changed


@pytest.mark.parametrize("size", [1.0, 1e-2, 1e-5])
def test_a_change_of_any_size_may_be_rounded_otherwise_but_not_left_out(size: float) -> None:
    theirs = BEFORE + np.float32(size) * STEP
    rounded = (BEFORE.astype(np.float64) + np.float32(size) * STEP).astype(np.float32)
    assert not mismatch(theirs, theirs, BEFORE)
    assert not mismatch(rounded * np.float32(1 + 1e-7), theirs, BEFORE)
    assert mismatch(BEFORE, theirs, BEFORE)
    assert mismatch(BEFORE + np.float32(size / 2) * STEP, theirs, BEFORE)


def test_a_state_is_not_multiplied_in_bfloat16() -> None:
    left, right = (np.random.default_rng(seed).standard_normal((32, 32)).astype(np.float32) for seed in (2, 3))
    few_bits = [(values.view(np.uint32) + 0x8000 & 0xFFFF0000).view(np.float32) for values in (left, right)]
    theirs, ours, other_order = left @ right, few_bits[0] @ few_bits[1], left[:, ::-1] @ right[::-1]
    before = np.zeros_like(theirs)
    spec = TensorSpec.from_json(["float32", [32, 32]])
    assert not mismatch(other_order.reshape(-1), theirs.reshape(-1), before.reshape(-1), spec)
    assert mismatch(ours.reshape(-1), theirs.reshape(-1), before.reshape(-1), spec)


def test_what_only_rounding_changes_may_be_left_alone() -> None:
    assert not mismatch(BEFORE, np.nextafter(BEFORE, np.float32(2)), BEFORE)


@pytest.mark.parametrize("value", [-1e9, np.inf, np.nan])
def test_one_value_far_from_all_others_hides_no_other_change(value: float) -> None:
    theirs = put(BEFORE + np.float32(1e-3) * STEP, 7, value)
    assert not mismatch(theirs, theirs, BEFORE)
    assert mismatch(put(BEFORE, 7, value), theirs, BEFORE)


def test_missing_numbers_have_to_be_replaced_by_the_same() -> None:
    given = BEFORE.copy()
    given[::5] = np.nan
    for value in (0.0, 3.0):
        theirs = np.nan_to_num(given, nan=value)
        assert not mismatch(theirs, theirs, given)
        assert mismatch(np.nan_to_num(given, nan=value + 1), theirs, given)
        assert mismatch(given, theirs, given)


def test_a_few_values_that_hardly_change_may_be_off() -> None:
    theirs = BEFORE + STEP
    theirs[:20] = BEFORE[:20] + np.float32(1e-4)
    ours = theirs.copy()
    ours[:20] += np.float32(1e-4)
    assert not mismatch(ours, theirs, BEFORE)


def test_whole_numbers_are_exact() -> None:
    before = np.arange(1000)
    assert not mismatch(before + 1, before + 1, before, COUNTS)
    assert "1 of 1000 values differ" in mismatch(put(before + 1, 3, 0), before + 1, before, COUNTS)
