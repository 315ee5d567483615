"""The second comparison, for outputs that the usual rule refuses, or that it passes on too coarse a scale.

The reference runs on the very same inputs in double precision, once as it is and up to sixteen times with every input
and weight nudged by a few units in its last place. Where a nudge moves a value of the output, its rounding counts for
as much: near a kink, behind a cancellation, at a tie. What one scale for all would hide is seen on its row's scale.
"""

import functools
from collections.abc import Sequence

import numpy as np

from tasks.judge.blocks import of_all, of_rows, place_of
from tasks.judge.equality import (
    GROSS_SHARE,
    MANY,
    OWN_ERROR_FACTOR,
    Comparison,
    allowed_share,
    as_array,
    epsilon,
    is_inexact,
    pieces,
    pieces_of_rows,
    rms_of_rows,
    rows_of,
    tiny,
    widened,
)
from tasks.judge.wire import TensorSpec, offsets

SINGLE_EPSILON = 2.0**-23
NUDGE = 16 * SINGLE_EPSILON
NUDGES = (1, 4, 16)
"""How many are tried, one after the other: mostly one tells enough, and more can only allow more."""
NUDGE_FACTOR = 32 * SINGLE_EPSILON / NUDGE
"""What a value may be off, as a multiple of what nudges move it by: above 1, so that either side of a step is right."""

RARE, RARE_ERROR = 1e-4, 4.0
"""So few values may be off by so many times what is allowed: other orders of sums have long tails, on rows that an
outlier elsewhere has reached above all."""


class CloseLook:
    """What the reference gives for one set of inputs in double precision.

    Of outputs of floats only what nudges move each value by is kept: sixteen of a gigabyte each find room nowhere.
    """

    def __init__(self, exact: np.ndarray, specs: Sequence[TensorSpec], *, rounded: np.ndarray | None = None) -> None:
        """Know of no nudge yet.

        Args:
            exact: the block of outputs in double precision.
            specs: their forms in the usual precision.
            rounded: a block like that for inputs and weights rounded as TF32 does, for problems that allow it.
        """
        wide = widened(specs)
        self._places = list(zip(wide, offsets(wide)[0], strict=True))
        self.exact = self._arrays(exact)
        self.rounded = self.exact if rounded is None else self._arrays(rounded)
        self.moved = [
            np.zeros_like(values) if is_inexact(spec) else None for spec, values in zip(specs, self.exact, strict=True)
        ]
        """Per output of floats, by how much nudges move each value at most."""
        self.others: list[list[np.ndarray]] = [[] for _ in specs]
        """Per other output, what it is with inputs and weights a little off."""

    def add(self, nudged: np.ndarray) -> None:
        """Take up the outputs for inputs and weights that are a little off."""
        for exact, moved, others, values in zip(self.exact, self.moved, self.others, self._arrays(nudged), strict=True):
            if moved is None:
                others.append(values.copy())  # not a view, which would keep all outputs
                continue
            with np.errstate(all="ignore"):
                for at in pieces(values):
                    np.maximum(moved[at], np.abs(values[at] - exact[at]), out=moved[at])

    def _arrays(self, block: np.ndarray) -> list[np.ndarray]:
        return [as_array(block, *place) for place in self._places]


def compare_closely(
    actual: np.ndarray, truth: np.ndarray, specs: Sequence[TensorSpec], look: CloseLook, *, by_row: bool, by_value: bool
) -> Comparison:
    """Compare outputs with the reference's, or with the double-precision ones where they are nearer to those.

    Args:
        by_row: allow nothing on the scale of the whole output that the value's own row does not allow.
        by_value: nor that many values are off by a good part of themselves.
    """
    worst = Comparison(max_error=0.0)
    for index, (spec, start) in enumerate(zip(specs, offsets(specs)[0], strict=True)):
        if not spec.num_items:
            continue
        ours, theirs = (as_array(block, spec, start) for block in (actual, truth))
        exact, moved = look.exact[index], look.moved[index]
        if moved is None:
            found = _one_of(ours, [theirs, exact, *look.others[index]])
        else:
            rows = rows_of(spec) if by_row else 1
            found = _compare_floats(
                ours, theirs, exact, moved, look.rounded[index], spec, num_rows=rows, by_value=by_value
            )
        if found.max_error > worst.max_error:
            worst = Comparison(
                max_error=found.max_error, detail=f"output {index}: {found.detail}" if found.detail else ""
            )
    return worst


def _compare_floats(
    ours: np.ndarray,
    theirs: np.ndarray,
    exact: np.ndarray,
    moved: np.ndarray,
    rounded: np.ndarray,
    spec: TensorSpec,
    *,
    num_rows: int,
    by_value: bool,
) -> Comparison:
    """Piece after piece, of whole rows: what is computed takes ten times the memory of the outputs."""
    worst, words, num_off, num_gross, num_finite = -1.0, "", 0, 0, 0
    for at, num_here in pieces_of_rows(ours, num_rows):
        with np.errstate(all="ignore"):  # not a number is what one finds in others' outputs
            own, truth = ours[at].astype(np.float64), theirs[at].astype(np.float64)
            error = np.fmin(np.abs(own - truth), np.abs(own - exact[at]))
        allowed = _allowed(spec, truth, exact[at], moved[at], rounded[at], num_rows=num_here)
        ratio = _ratio(own, truth, error, allowed)
        num_off += int(of_all(np.sum, ratio > 1))
        most = place_of(np.argmax, ratio)
        if ratio[most] > worst:
            worst = float(ratio[most])
            words = (
                f"the worst {float(own[most]):.6g} for {float(truth[most]):.6g} "
                f"(error {float(error[most]):.2g}, allowed {float(allowed[most]):.2g})"
            )
        num_finite += int(of_all(np.sum, np.isfinite(truth)))
        if by_value:
            num_gross += _num_gross(error, truth, exact[at], moved[at], tiny(spec))
    is_rare = worst <= RARE_ERROR and num_off <= RARE * num_finite
    if not is_rare and worst > 1.0:
        return Comparison(max_error=worst, detail=f"{num_off} of {ours.size} values are off, {words}")
    share = num_gross / max(num_finite, 1)
    if share > MANY:
        words = f"{share:.0%} of {num_finite} values are off by more than {GROSS_SHARE:.1%} of themselves"
        return Comparison(max_error=share / MANY, detail=words)
    return Comparison(max_error=min(worst, 1.0))


def _allowed(
    spec: TensorSpec,
    theirs: np.ndarray,
    exact: np.ndarray,
    moved: np.ndarray,
    rounded: np.ndarray,
    *,
    num_rows: int,
) -> np.ndarray:
    """The error that each value may have."""
    with np.errstate(all="ignore"):
        # Nudges are of single precision's size; double precision is moved by so much less.
        finer = min(1.0, epsilon(spec) / SINGLE_EPSILON)
        moved = finer * NUDGE_FACTOR * moved
        magnitude = np.nan_to_num(np.maximum(np.abs(exact), moved / allowed_share(spec)), posinf=0.0)
        own = np.nan_to_num(np.maximum(np.abs(theirs - exact), np.abs(rounded - exact)), posinf=0.0)
    scales = rms_of_rows(magnitude.reshape(num_rows, -1))
    own_errors = of_rows(np.max, own.reshape(num_rows, -1))
    by_rows = np.maximum(allowed_share(spec) * scales, OWN_ERROR_FACTOR * own_errors)
    items_per_row = exact.size // num_rows
    return np.maximum(allowed_share(spec) * magnitude, np.maximum(np.repeat(by_rows, items_per_row), tiny(spec)))


def _ratio(ours: np.ndarray, theirs: np.ndarray, error: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Each value's error as a multiple of what is allowed."""
    with np.errstate(all="ignore"):
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        found: np.ndarray = np.where(
            same, 0.0, np.where(np.isfinite(ours) & np.isfinite(theirs), error / allowed, np.inf)
        )
    return found


def _num_gross(error: np.ndarray, theirs: np.ndarray, exact: np.ndarray, moved: np.ndarray, least: float) -> int:
    """How many values are off by a good part of themselves that rounding does not explain."""
    with np.errstate(all="ignore"):
        explained = np.maximum(2 * moved, OWN_ERROR_FACTOR * np.abs(theirs - exact))
        is_off = error > np.maximum(np.maximum(GROSS_SHARE * np.abs(exact), explained), least)
    return int(of_all(np.sum, is_off))


def _one_of(ours: np.ndarray, possible: Sequence[np.ndarray]) -> Comparison:
    """Whole numbers and truth values must be exact, unless rounding alone decides between several."""
    is_right = functools.reduce(np.logical_or, (ours == values for values in possible))
    differing = int(of_all(np.sum, ~is_right))
    if not differing:
        return Comparison(max_error=0.0)
    return Comparison(max_error=np.inf, detail=f"{differing} of {ours.size} values differ")
