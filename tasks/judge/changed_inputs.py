"""Whether a candidate leaves an input as the reference does that writes to it."""

import numpy as np

from tasks.judge.blocks import of_all
from tasks.judge.equality import as_array, compare, epsilon, is_inexact, pieces
from tasks.judge.wire import TensorSpec

INPUT_ERROR = 2.0**-12
"""The share of its root mean square by which an input that is written to may differ: an eighth of what is allowed.
Operands in bfloat16 are off by more; what single precision rounds is far less, but no close look excuses any of it."""
CHANGE_ERROR, ROUNDING, OFF_SHARE = 0.1, 4.0, 0.05
"""The share of its own change by which a value may differ, how many roundings besides, and how many may be farther off:
what a product rounds is a share of all of it, and much beside a value that hardly changes."""


def change_mismatch(
    ours: np.ndarray, theirs: np.ndarray, before: np.ndarray, spec: TensorSpec, *, own_error: float = 0.0
) -> str:
    """How the input that the candidate leaves differs from the reference's; empty if it does not.

    What is off by rounding is not looked into, so that far more of it is allowed than for outputs. A small change is
    compared for itself, or it could be left out.

    Args:
        ours: bytes of the input after the candidate's call.
        theirs: after the reference's.
        before: as both were given it.
        own_error: what the reference itself may be off there, as a share like that.
    """
    found = compare(ours, theirs, [spec], [max(INPUT_ERROR, own_error)])
    if not found.is_equal:
        return found.detail.removeprefix("output 0: ")
    return _off_changes(ours, theirs, before, spec) if is_inexact(spec) else ""


def _off_changes(ours: np.ndarray, theirs: np.ndarray, before: np.ndarray, spec: TensorSpec) -> str:
    """How many of the values that change do so otherwise; empty where few do, which rounding may explain."""
    arrays = [as_array(block, spec, 0) for block in (ours, theirs, before)]
    num_off = num_moved = 0
    for at in pieces(arrays[0]):
        one, other, given = (values[at].astype(np.float64) for values in arrays)
        given = np.where(np.isnan(given), 0.0, given)  # what replaces a missing number is all of the change
        with np.errstate(all="ignore"):
            rounded = ROUNDING * epsilon(spec) * np.maximum(np.abs(other), np.abs(given))
            moves = ((other != given) | (one != other)) & np.isfinite(other)
            is_off = moves & ~(np.abs(one - other) <= CHANGE_ERROR * np.abs(other - given) + rounded)
        num_off += int(of_all(np.sum, is_off))
        num_moved += int(of_all(np.sum, moves))
    return f"{num_off} of {num_moved} values that change do so otherwise" if num_off > OFF_SHARE * num_moved else ""
