"""When two outputs are equal: in form exactly, in value as far as single precision means it.

The allowance for a tensor of floats is the largest of 8 times the reference's own error against float64 and 128 units
in the last place, both on the scale of the reference's root mean square, and 128 units of the element itself. A plain
loop over a few thousand summands, Winograd or a fast exponential needs that; an operand rounded to 11 bits is off by
about twenty times as much. Where this rule is too coarse or too strict, close_look.py decides.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tasks.judge.blocks import Blocks, as_rows, is_on_host, of_all, of_rows, on_host, place_of
from tasks.judge.wire import TensorSpec, offsets

OWN_ERROR_FACTOR = 8.0
ALLOWED_ULPS = 128.0
# Half precision is rounded to once, at the end of what was computed in single precision.
ALLOWED_ULPS_HALF = 4.0
# Where float64 could not be had, the reference's own error is not known and is taken to be this share of those ulps.
UNKNOWN_OWN_ERROR_SHARE = 0.25
MIN_ROW_ITEMS = 16
LIKE_SIZES = 0.03, 1e4
GROSS_SHARE, MANY = 2.0**-7, 0.1
AT_ONCE_BYTES = 64 << 20
"""Of outputs whose errors are computed together: on the way they take four times as much."""
PIECE_ITEMS, DEVICE_PIECE_ITEMS = 1 << 17, 1 << 25
LEAST_SQUARE = 1e-290
"""A sum of squares below this may have lost some of them, which double precision has no numbers for."""
_EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
_EPSILON |= {"complex128": _EPSILON["float64"], "complex64": _EPSILON["float32"]}
_TINY = dict.fromkeys(_EPSILON, float(np.finfo(np.float32).tiny))
_TINY |= dict.fromkeys(("float64", "complex128"), float(np.finfo(np.float64).tiny))
_WIDE = dict.fromkeys(_EPSILON, "float64") | {"complex64": "complex128", "complex128": "complex128"}
_PARTS = {"complex64": np.float32, "complex128": np.float64}


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
        if ours.path != theirs.path:
            return f"output {index} has the key {ours.path or 'none'}, the reference's {theirs.path or 'none'}"
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
        found = _compare_floats(ours, theirs, spec, own_errors[index]) if is_inexact(spec) else _exact(ours, theirs)
        if found.max_error > worst.max_error:
            worst = Comparison(
                max_error=found.max_error, detail=f"output {index}: {found.detail}" if found.detail else ""
            )
    return worst


def quick_errors(actual: Blocks, truth: Blocks, specs: Sequence[TensorSpec], own_errors: Sequence[float]) -> np.ndarray:
    """The errors of several blocks as multiples of what is allowed, float64 of shape (blocks,), with no word on more.

    Above 1 or NaN may still be right where blocks are on a device: `compare` decides then, which looks at one block at
    a time and waits for the device for each number.
    """
    if is_on_host(actual[0]) or len(actual) * actual[0].size > AT_ONCE_BYTES:
        pairs = zip(actual, truth, strict=True)
        return np.array([compare(ours, theirs, specs, own_errors).max_error for ours, theirs in pairs])
    return errors_at_once(actual, truth, specs, own_errors)  # type: ignore[arg-type]


def errors_at_once(
    actual: np.ndarray, truth: np.ndarray, specs: Sequence[TensorSpec], own_errors: Sequence[float]
) -> np.ndarray:
    """The errors of quick_errors, computed for all blocks together where they are.

    At most 1 only where values are equal on the tensor's own scale; where that is zero or none, infinite or NaN.
    """
    worst = np.zeros(len(actual))
    for spec, start, own_error in zip(specs, offsets(specs)[0], own_errors, strict=True):
        if not spec.num_items:
            continue
        ours, theirs = (as_array(rows, spec, start) for rows in (actual, truth))
        with np.errstate(all="ignore"):
            if is_inexact(spec):
                squares = on_host(of_rows(np.sum, np.square(theirs, dtype=np.float64)))
                difference = on_host(of_rows(np.max, np.abs(ours - theirs)))  # NaN where there is one
                base = max(OWN_ERROR_FACTOR * own_error, allowed_share(spec)) * np.sqrt(squares / theirs.shape[1])
                errors = np.where(np.isfinite(base) & (squares > LEAST_SQUARE), difference / base, np.inf)
                errors[difference == 0] = 0.0
            else:
                errors = np.where(on_host(of_rows(np.any, ours != theirs)), np.inf, 0.0)
        worst = np.maximum(worst, errors)
    return worst


def are_same(ones: Blocks, others: Blocks) -> np.ndarray:
    """For each of several blocks of one size whether it is the other, byte for byte."""
    if is_on_host(ones[0]):
        return np.array([np.array_equal(one, other) for one, other in zip(ones, others, strict=True)])
    words, other_words = (as_rows(blocks).view(np.uint64) for blocks in (ones, others))
    found: np.ndarray = ~on_host(of_rows(np.any, words != other_words))
    return found


def is_same(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether a block is another, byte for byte."""
    return one.size == other.size and bool(are_same([one], [other])[0])


def rows_agree(actual: np.ndarray, truth: np.ndarray, specs: Sequence[TensorSpec]) -> bool:
    """Whether the allowance would do on a scale of its own for every row, a slice along the first dimension.

    To be asked where outputs are equal otherwise: infinities, and what is not a number, are where they have to be.
    """
    for spec, start in zip(specs, offsets(specs)[0], strict=True):
        if not is_inexact(spec) or rows_of(spec) == 1:
            continue
        ours, theirs = (as_array(block, spec, start).reshape(rows_of(spec), -1) for block in (actual, truth))
        with np.errstate(all="ignore"):
            difference = np.abs(ours - theirs)
            by_rows = np.maximum(allowed_share(spec) * _scales_of_rows(theirs), tiny(spec))
            # The difference of two infinities is no number, which says that a row is off, but not that a value is.
            for rows in _rows_at_once(of_rows(np.max, difference) <= by_rows, theirs):
                allowed = np.maximum(allowed_share(spec) * np.abs(theirs[rows]), by_rows[rows][:, None])
                if of_all(np.any, difference[rows] > allowed):
                    return False
    return True


def differ_grossly(actual: np.ndarray, truth: np.ndarray, specs: Sequence[TensorSpec]) -> bool:
    """Whether many values of an output are off by a good part of themselves, however small they are."""
    for spec, start in zip(specs, offsets(specs)[0], strict=True):
        if is_inexact(spec) and spec.num_items:
            ours, theirs = (as_array(block, spec, start) for block in (actual, truth))
            num_off = num_finite = 0
            with np.errstate(all="ignore"):
                for at in pieces(theirs):
                    is_off = np.abs(ours[at] - theirs[at]) > np.maximum(GROSS_SHARE * np.abs(theirs[at]), tiny(spec))
                    num_off += int(of_all(np.sum, is_off))
                    num_finite += int(of_all(np.sum, np.isfinite(theirs[at])))
            if num_off > MANY * num_finite:
                return True
    return False


def rows_of(spec: TensorSpec) -> int:
    """Slices along the first dimension that has several, or 1 where they would be too short to have a scale."""
    rows = next((size for size in spec.shape if size > 1), 1)
    return rows if spec.num_items >= rows * MIN_ROW_ITEMS else 1


def is_inexact(spec: TensorSpec) -> bool:
    return spec.dtype in _EPSILON


def epsilon(spec: TensorSpec) -> float:
    """The distance from 1 to the next number of the dtype."""
    return _EPSILON[spec.dtype]


def tiny(spec: TensorSpec) -> float:
    """What a value may be off in any case: numbers below this are not exact themselves."""
    return _TINY[spec.dtype]


def allowed_share(spec: TensorSpec) -> float:
    """What is allowed on any scale, as a share of it."""
    ulps = ALLOWED_ULPS_HALF if spec.dtype in ("float16", "bfloat16") else ALLOWED_ULPS
    return ulps * epsilon(spec)


def own_errors(single: np.ndarray, double: np.ndarray, specs: Sequence[TensorSpec]) -> list[float]:
    """The error of a single-precision run against a double-precision one, per output, as a share of the scale."""
    wide = widened(specs)
    errors = []
    for spec, start, wide_spec, wide_start in zip(specs, offsets(specs)[0], wide, offsets(wide)[0], strict=True):
        if not is_inexact(spec) or not spec.num_items:
            errors.append(0.0)
            continue
        ours = as_array(single, spec, start)
        truth = as_array(double, wide_spec, wide_start)
        with np.errstate(all="ignore"):
            differences = (np.where(np.isfinite(truth[at]), ours[at] - truth[at], 0.0) for at in pieces(truth))
            error = float(np.nanmax([float(of_all(np.nanmax, np.abs(difference))) for difference in differences]))
        scale = rms(truth)
        errors.append(error / scale if scale > 0 and np.isfinite(error) else unknown_own_error(spec))
    return errors


def widened(specs: Sequence[TensorSpec]) -> list[TensorSpec]:
    """The forms that the outputs take in a double-precision run."""
    return [replace(spec, dtype=_WIDE.get(spec.dtype, spec.dtype)) for spec in specs]


def unknown_own_error(spec: TensorSpec) -> float:
    return UNKNOWN_OWN_ERROR_SHARE * allowed_share(spec) if is_inexact(spec) else 0.0


def as_array(block: np.ndarray, spec: TensorSpec, start: int) -> np.ndarray:
    """The tensor's values within a block, complex numbers as pairs; bfloat16 is widened, the rest is a view.

    Where blocks are rows, so are the values.
    """
    raw = block[..., start : start + spec.num_bytes]
    if spec.dtype == "bfloat16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return raw.view(_PARTS.get(spec.dtype, np.dtype(spec.dtype)))


def put_array(block: np.ndarray, spec: TensorSpec, start: int, values: np.ndarray) -> None:
    """Write a tensor's values into a block, rounded to its dtype."""
    raw = block[start : start + spec.num_bytes]
    if spec.dtype == "bfloat16":  # the upper half of a float32
        raw.view(np.uint16)[:] = values.astype(np.float32).view(np.uint32) >> 16
    else:
        raw.view(_PARTS.get(spec.dtype, np.dtype(spec.dtype)))[:] = values


def is_as_finite(block: np.ndarray, plain: np.ndarray, specs: Sequence[TensorSpec]) -> bool:
    """Whether there are infinities, or values that are not numbers, only in tensors that usually have some."""
    for spec, start in zip(specs, offsets(specs)[0], strict=True):
        ours, usual = (as_array(values, spec, start) for values in (block, plain))
        if any(of_all(np.any, is_odd(ours)) and not of_all(np.any, is_odd(usual)) for is_odd in (np.isnan, np.isinf)):
            return False
    return True


def is_of_like_size(block: np.ndarray, plain: np.ndarray, specs: Sequence[TensorSpec]) -> bool:
    """Whether outputs are neither nearly nothing nor huge beside the usual ones, where little but rounding is left."""
    for spec, start in zip(specs, offsets(specs)[0], strict=True):
        if is_inexact(spec) and spec.num_items:
            size, usual = (rms(as_array(values, spec, start)) for values in (block, plain))
            if not LIKE_SIZES[0] * usual <= size <= LIKE_SIZES[1] * usual:
                return False
    return True


def has_numbers(block: np.ndarray, specs: Sequence[TensorSpec]) -> bool:
    starts, _ = offsets(specs)
    return any(bool(of_all(np.any, np.isfinite(as_array(block, s, at)))) for s, at in zip(specs, starts, strict=True))


def rms(values: np.ndarray) -> float:
    """Root mean square of the finite values."""
    with np.errstate(all="ignore"):
        peak = max((float(of_all(np.max, _finite_sizes(values[at]))) for at in pieces(values)), default=0.0)
        if not peak:
            return 0.0
        count, square = 0, 0.0
        for at in pieces(values):
            count += int(of_all(np.sum, np.isfinite(values[at])))
            shares = _finite_sizes(values[at]).astype(np.float64) / peak
            square += float(of_all(np.sum, np.square(shares)))
    return peak * (square / count) ** 0.5


def rms_of_rows(matrix: np.ndarray) -> np.ndarray:
    """Root mean square of each row's finite values."""
    sizes = _finite_sizes(matrix)
    peaks = of_rows(np.max, sizes)
    shares = sizes / np.where(peaks > 0, peaks, 1.0)[:, None]
    counts = np.maximum(of_rows(np.sum, np.isfinite(matrix)), 1)
    return peaks * np.sqrt(of_rows(np.sum, np.square(shares)) / counts)


def _finite_sizes(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), np.abs(values), 0.0)


def _scales_of_rows(matrix: np.ndarray) -> np.ndarray:
    """As rms_of_rows, but computed in less time for rows that are nothing special."""
    squares = _row_squares(matrix)
    scales = np.sqrt(squares / matrix.shape[1])
    for rows in _rows_at_once(np.isfinite(squares) & (squares > LEAST_SQUARE), matrix):
        scales[rows] = rms_of_rows(matrix[rows].astype(np.float64))
    return scales


def _rows_at_once(is_done: np.ndarray, matrix: np.ndarray) -> Iterator[np.ndarray]:
    """The indices of the rows that are not done, as many at a time as stay in the cache."""
    rows = np.flatnonzero(on_host(~is_done))
    step = max(1, _piece_items(matrix) // matrix.shape[1])
    for first in range(0, rows.size, step):
        yield np.asarray(rows[first : first + step], like=matrix)


def _row_squares(matrix: np.ndarray) -> np.ndarray:
    """The sum of each row's squares, in double precision."""
    if is_on_host(matrix):
        return np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64)
    squares: np.ndarray = of_rows(np.sum, np.square(matrix.astype(np.float64)))
    return squares


def _exact(ours: np.ndarray, theirs: np.ndarray) -> Comparison:
    differing = int(of_all(np.sum, ours != theirs))
    if not differing:
        return Comparison(max_error=0.0)
    return Comparison(max_error=np.inf, detail=f"{differing} of {theirs.size} values differ")


def _compare_floats(ours: np.ndarray, theirs: np.ndarray, spec: TensorSpec, own_error: float) -> Comparison:
    if not theirs.size:
        return Comparison(max_error=0.0)
    with np.errstate(all="ignore"):
        base = max(OWN_ERROR_FACTOR * own_error, allowed_share(spec)) * _quick_rms(theirs)
        worst = _largest_difference(ours, theirs)
    if worst <= base:  # never for NaN
        return Comparison(max_error=worst / base if base > 0 else 0.0)
    return _compare_carefully(ours, theirs, max(base, tiny(spec)), allowed_share(spec))


def _largest_difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """NaN where there is one."""
    return float(np.max([float(of_all(np.max, np.abs(ours[at] - theirs[at]))) for at in pieces(ours)]))


def pieces(values: np.ndarray) -> list[slice]:
    """Parts that stay in the cache: large temporaries cost more than what is computed with them."""
    step = _piece_items(values)
    return [slice(at, at + step) for at in range(0, values.size, step)]


def pieces_of_rows(values: np.ndarray, num_rows: int) -> list[tuple[slice, int]]:
    """Parts like those, but of whole rows, each with the number of them; a row is never cut.

    >>> pieces_of_rows(np.zeros(6), 2)
    [(slice(0, 6, None), 2)]
    """
    per_row = values.size // num_rows
    at_once = max(1, _piece_items(values) // per_row)
    return [
        (slice(first * per_row, min(first + at_once, num_rows) * per_row), min(at_once, num_rows - first))
        for first in range(0, num_rows, at_once)
    ]


def _piece_items(values: np.ndarray) -> int:
    return PIECE_ITEMS if is_on_host(values) else DEVICE_PIECE_ITEMS


def _quick_rms(values: np.ndarray) -> float:
    if is_on_host(values):
        square = float(np.dot(values, values)) if values.dtype == np.float32 else np.inf
    else:
        square = sum(float(of_all(np.sum, np.square(values[at], dtype=np.float64))) for at in pieces(values))
    return (square / values.size) ** 0.5 if np.isfinite(square) and square > 1e-30 else rms(values)


def _compare_carefully(ours: np.ndarray, theirs: np.ndarray, base: float, element: float) -> Comparison:
    with np.errstate(invalid="ignore"):
        ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(theirs)
    odd = ~finite & ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    odd |= finite & ~np.isfinite(ours)
    if of_all(np.any, odd):
        at = place_of(np.argmax, odd)
        return Comparison(
            max_error=np.inf,
            detail=f"{int(of_all(np.sum, odd))} of {theirs.size} values differ in being finite, "
            f"as {float(ours[at])} for {float(theirs[at])}",
        )
    with np.errstate(all="ignore"):
        error = np.where(finite, np.abs(ours - theirs), 0.0)
        allowed = np.maximum(element * np.where(finite, np.abs(theirs), 0.0), base)
        ratio = error / allowed
    at = place_of(np.argmax, ratio)
    if ratio[at] <= 1.0:
        return Comparison(max_error=float(ratio[at]))
    return Comparison(
        max_error=float(ratio[at]),
        detail=f"{int(of_all(np.sum, ratio > 1))} of {theirs.size} values are off, the worst {float(ours[at]):.6g} "
        f"for {float(theirs[at]):.6g} (error {float(error[at]):.2g}, allowed {float(allowed[at]):.2g})",
    )
