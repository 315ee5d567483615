"""When two outputs are equal: in form exactly, in value as far as single precision means it.

The allowance for a tensor of floats is the largest of 8 times the reference's own error against float64 and 128 units
in the last place, both on the scale of the reference's root mean square, and 128 units of the element itself. A plain
loop over a few thousand summands, Winograd or a fast exponential needs that; an operand rounded to 11 bits is off by
about twenty times as much.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.judge.wire import TensorSpec, offsets

OWN_ERROR_FACTOR = 8.0
SCALE_ULPS = 128.0
ELEMENT_ULPS = 128.0
# Where float64 could not be had, the reference's own error is not known and is taken to be this many ulps.
UNKNOWN_OWN_ERROR_ULPS = 32.0
TINY = np.finfo(np.float32).tiny
_EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """How far an output is from the truth."""

    max_error: float
    """As a multiple of what is allowed: equal up to 1."""
    detail: str = ""
    """For people; empty when equal."""

    @property
    def is_equal(self) -> bool:
        return self.max_error <= 1.0


def form_mismatch(actual: Sequence[TensorSpec], expected: Sequence[TensorSpec]) -> str:
    """What differs in number, shape or dtype, or nothing."""
    if len(actual) != len(expected):
        return f"{len(actual)} outputs, where the reference has {len(expected)}"
    for index, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
        if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
            return (
                f"output {index} is {ours.dtype} of shape {list(ours.shape)}, "
                f"the reference's is {theirs.dtype} of shape {list(theirs.shape)}"
            )
    return ""


def compare(
    actual: np.ndarray, truth: np.ndarray, specs: Sequence[TensorSpec], own_errors: Sequence[float]
) -> Comparison:
    """Compare two blocks of outputs of one form.

    Args:
        own_errors: per output, the reference's own error against float64 as a share of the root mean square.
    """
    worst = Comparison(max_error=0.0)
    for index, (spec, start) in enumerate(zip(specs, offsets(specs)[0], strict=True)):
        ours, theirs = (as_array(block, spec, start) for block in (actual, truth))
        found = (
            _compare_floats(ours, theirs, spec, own_errors[index]) if spec.dtype in _EPSILON else _exact(ours, theirs)
        )
        if found.max_error > worst.max_error:
            worst = Comparison(
                max_error=found.max_error, detail=f"output {index}: {found.detail}" if found.detail else ""
            )
    return worst


def own_errors(single: np.ndarray, double: np.ndarray, specs: Sequence[TensorSpec]) -> list[float]:
    """The error of a single-precision run against a double-precision one, per output, as a share of the scale."""
    wide = widened(specs)
    errors = []
    for spec, start, wide_spec, wide_start in zip(specs, offsets(specs)[0], wide, offsets(wide)[0], strict=True):
        if spec.dtype not in _EPSILON or not spec.num_items:
            errors.append(0.0)
            continue
        ours = as_array(single, spec, start).astype(np.float64)
        truth = as_array(double, wide_spec, wide_start)
        with np.errstate(all="ignore"):
            error = float(np.nanmax(np.abs(np.where(np.isfinite(truth), ours - truth, 0.0))))
        scale = rms(truth)
        errors.append(error / scale if scale > 0 and np.isfinite(error) else unknown_own_error(spec))
    return errors


def widened(specs: Sequence[TensorSpec]) -> list[TensorSpec]:
    """The forms that the outputs take in a double-precision run."""
    return [TensorSpec.from_json(["float64" if s.dtype in _EPSILON else s.dtype, list(s.shape)]) for s in specs]


def unknown_own_error(spec: TensorSpec) -> float:
    return UNKNOWN_OWN_ERROR_ULPS * _EPSILON.get(spec.dtype, 0.0)


def as_array(block: np.ndarray, spec: TensorSpec, start: int) -> np.ndarray:
    """The tensor's values within a block; bfloat16 is widened, everything else is a view."""
    raw = block[start : start + spec.num_bytes]
    if spec.dtype == "bfloat16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return raw.view(np.dtype(spec.dtype))


def is_finite(block: np.ndarray, specs: Sequence[TensorSpec]) -> bool:
    starts, _ = offsets(specs)
    return all(bool(np.isfinite(as_array(block, s, at)).all()) for s, at in zip(specs, starts, strict=True))


def has_nan(block: np.ndarray, specs: Sequence[TensorSpec]) -> bool:
    starts, _ = offsets(specs)
    return any(bool(np.isnan(as_array(block, s, at)).any()) for s, at in zip(specs, starts, strict=True))


def rms(values: np.ndarray) -> float:
    """Root mean square of the finite values."""
    finite = values[np.isfinite(values)].astype(np.float64)
    if not finite.size:
        return 0.0
    peak = float(np.abs(finite).max())
    return peak * float(np.sqrt(np.mean(np.square(finite / peak)))) if peak > 0 else 0.0


def _exact(ours: np.ndarray, theirs: np.ndarray) -> Comparison:
    differing = int((ours != theirs).sum())
    if not differing:
        return Comparison(max_error=0.0)
    return Comparison(max_error=np.inf, detail=f"{differing} of {theirs.size} values differ")


def _compare_floats(ours: np.ndarray, theirs: np.ndarray, spec: TensorSpec, own_error: float) -> Comparison:
    if not theirs.size:
        return Comparison(max_error=0.0)
    epsilon = _EPSILON[spec.dtype]
    with np.errstate(all="ignore"):
        base = max(OWN_ERROR_FACTOR * own_error, SCALE_ULPS * epsilon) * _quick_rms(theirs)
        difference = np.abs(ours - theirs)
        worst = float(difference.max())
    if worst <= base:  # never for NaN
        return Comparison(max_error=worst / base if base > 0 else 0.0)
    return _compare_carefully(ours, theirs, base, ELEMENT_ULPS * epsilon)


def _quick_rms(values: np.ndarray) -> float:
    square = float(np.dot(values, values)) if values.dtype == np.float32 else np.inf
    return (square / values.size) ** 0.5 if np.isfinite(square) and square > 1e-30 else rms(values)


def _compare_carefully(ours: np.ndarray, theirs: np.ndarray, base: float, element: float) -> Comparison:
    with np.errstate(invalid="ignore"):
        ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(theirs)
    odd = ~finite & ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    odd |= finite & ~np.isfinite(ours)
    if odd.any():
        at = int(np.argmax(odd))
        return Comparison(
            max_error=np.inf,
            detail=f"{int(odd.sum())} of {theirs.size} values differ in being finite, as {ours[at]} for {theirs[at]}",
        )
    with np.errstate(all="ignore"):
        error = np.where(finite, np.abs(ours - theirs), 0.0)
        allowed = np.maximum(element * np.where(finite, np.abs(theirs), 0.0), max(base, float(TINY)))
        ratio = error / allowed
    at = int(np.argmax(ratio))
    if ratio[at] <= 1.0:
        return Comparison(max_error=float(ratio[at]))
    return Comparison(
        max_error=float(ratio[at]),
        detail=f"{int((ratio > 1).sum())} of {theirs.size} values are off, the worst {ours[at]:.6g} "
        f"for {theirs[at]:.6g} (error {error[at]:.2g}, allowed {allowed[at]:.2g})",
    )
