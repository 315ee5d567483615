"""Whether a candidate leaves an input as the reference does that writes to it."""

import numpy as np

from tasks.judge.blocks import of_all
from tasks.judge.equality import as_array, compare, epsilon, is_inexact
from tasks.judge.wire import TensorSpec

INPUT_ERROR = 2.0**-8
"""The share of its root mean square by which an input that is written to may differ: an eighth of what is allowed."""
CHANGE_ERROR, ROUNDING = 0.1, 4.0
"""The share of what the reference changes by which it may differ, and how many roundings of what stands there."""


def change_mismatch(ours: np.ndarray, theirs: np.ndarray, before: np.ndarray, spec: TensorSpec) -> str:
    """How the input that the candidate leaves differs from the reference's; empty if it does not.

    What is off by rounding is not looked into, so that far more of it is allowed than for outputs. A small change is
    compared for itself, or it could be left out.

    Args:
        ours: bytes of the input after the candidate's call.
        theirs: after the reference's.
        before: as both were given it.
    """
    found = compare(ours, theirs, [spec], [INPUT_ERROR])
    if not found.is_equal:
        return found.detail.removeprefix("output 0: ")
    if is_inexact(spec):
        one, other, given = (as_array(block, spec, 0) for block in (ours, theirs, before))
        wanted, off = _size(other - given), _size(one - other)
        if off > CHANGE_ERROR * wanted + ROUNDING * epsilon(spec) * _size(other):
            return f"it is off by {off / wanted:.0%} of the change" if wanted else "it is not to change"
    return ""


def _size(values: np.ndarray) -> float:
    """The root mean square."""
    with np.errstate(all="ignore"):
        return float(np.sqrt(of_all(np.sum, np.square(np.abs(values), dtype=np.float64)) / max(values.size, 1)))
