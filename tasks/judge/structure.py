"""What a tensor's values have that would be lost if they were moved one by one: an order, a sum, a symmetry.

Values are flat, as they lie in the tensor's memory, and on the host.
"""

from collections.abc import Sequence

import numpy as np

from tasks.judge.wire import TensorSpec

BYTE_DTYPES = ("int8", "uint8")
WHOLE_DTYPES = ("int64", "int32", "int16", *BYTE_DTYPES)
HALF_DTYPES = ("float16", "bfloat16")
MASK_VALUES = 8
_LOOKED_AT = 1 << 20  # structure shows in a part of a large tensor
_SURE_ROWS = 48
"""So many that values drawn one by one would not all be in order."""
_COLUMNS_OF_INTERVALS = 8
_DEFINITE_ROWS, _SEMIDEFINITE_ROWS = 2048, 512
_FEW_VECTORS = 4
_LEAST_MASK = -1e4
_MANY_BYTES = 96
_MOST_WHOLE = 1 << 24
_LEAST_PATTERN = 3


def may_vary(spec: TensorSpec, values: np.ndarray, low: float, high: float) -> bool:
    """Whether a tensor that every draw has alike could as well be another: a mask, places in order, or plain numbers.

    Whole numbers may be indices or counts, and on a device an index that is out of range ends the process: so they may
    only where another order, or one less, is as valid. Zeros become ones, which no table of a single row takes.
    """
    if spec.dtype in WHOLE_DTYPES:
        if values.size < MASK_VALUES or low < 0:
            return False
        return low == high or is_mask(values) or length_of_places(spec, values) > 0
    if low == high or (is_mask(values) and not is_definite(spec, values)):
        return True
    if is_in_order(spec, values):
        return True
    return not (is_structured(spec, values) or is_definite(spec, values) or is_mirrored(spec, values))


def may_be_others(spec: TensorSpec, draws: Sequence[np.ndarray]) -> bool:
    """Whether whole numbers that differ from draw to draw could as well be others: bytes, lengths, places in a table.

    Not where no number comes twice, as in an order, where they grow or fall, or where their sum is always the same.
    """
    low, high = min(int(draw.min()) for draw in draws), max(int(draw.max()) for draw in draws)
    if spec.dtype in BYTE_DTYPES:
        return high - low >= _MANY_BYTES
    if high >= _MOST_WHOLE or spec.num_items > _LOOKED_AT or len({int(draw.sum()) for draw in draws}) == 1:
        return False
    if any(is_mask(draw) or length_of_places(spec, draw) or _is_in_steps(spec, draw) for draw in draws):
        return False
    return low >= 0 and (spec.num_items < MASK_VALUES or any(len(np.unique(draw)) < draw.size for draw in draws))


def _is_in_steps(spec: TensorSpec, values: np.ndarray) -> bool:
    length = spec.shape[-1] if spec.shape else 0
    if length < 3 or values.size % length:
        return False
    steps = np.diff(values.reshape(-1, length).astype(np.int64), axis=1)
    return bool((steps >= 0).all() or (steps <= 0).all())


def is_in_order(spec: TensorSpec, values: np.ndarray) -> bool:
    """Whether every row of numbers grows from its first to its last, such as a grid, steps of time or boundaries."""
    length = spec.shape[-1] if spec.shape else 0
    if spec.dtype not in ("float32", "float64") or length < 4 or values.size != np.prod(spec.shape):
        return False
    return bool((np.diff(values.reshape(-1, length), axis=1) > 0).all())


def is_added_mask(values: np.ndarray) -> bool:
    """Whether these are zeros and a number that takes what it is added to out of any softmax."""
    if values.dtype.kind != "f" or values.size < MASK_VALUES:
        return False
    lowest = float(values.min())
    return lowest <= _LEAST_MASK and bool(((values == 0) | (values == lowest)).all())


def is_mask(values: np.ndarray) -> bool:
    return values.size >= MASK_VALUES and bool(((values == 0) | (values == 1)).all())


def length_of_places(spec: TensorSpec, values: np.ndarray) -> int:
    """How long the rows are, or all of it, that are 0, 1, 2 and so on in some order; 0 if they are not."""
    for length in (spec.shape[-1] if spec.shape else 1, values.size):
        if values.size % length == 0 and (np.sort(values.reshape(-1, length), axis=1) == np.arange(length)).all():
            return length
    return 0


def is_hermitian(spec: TensorSpec, values: np.ndarray) -> bool:
    """Whether these are complex matrices, as pairs of numbers, that equal their conjugate transposes."""
    shape = spec.shape
    if not spec.dtype.startswith("complex") or len(shape) < 2 or not 1 < shape[-1] == shape[-2]:
        return False
    if values.size != 2 * np.prod(shape):
        return False
    matrices = values.reshape(-1, shape[-1], shape[-1], 2)
    conjugated = np.swapaxes(matrices, 1, 2) * np.array([1, -1], values.dtype)
    return np.allclose(matrices, conjugated, rtol=1e-5, atol=1e-5 * float(np.abs(matrices).max()))


def is_definite(spec: TensorSpec, values: np.ndarray) -> bool:
    """Whether these are symmetric matrices, but for rounding, of which those looked at are positive definite."""
    if len(spec.shape) < 2 or not 1 < spec.shape[-1] == spec.shape[-2] or values.size != np.prod(spec.shape):
        return False
    size = spec.shape[-1]
    if size > _DEFINITE_ROWS:
        return False
    matrices = values.reshape(-1, size, size)[: max(1, _LOOKED_AT // size**2)].astype(np.float64)
    mirrored = np.swapaxes(matrices, -1, -2)
    if not np.allclose(matrices, mirrored, rtol=1e-4, atol=1e-5 * float(np.abs(matrices).max())):
        return False
    try:
        np.linalg.cholesky(matrices + mirrored)
    except np.linalg.LinAlgError:
        return _is_semidefinite(matrices[0] + mirrored[0])
    return True


def _is_semidefinite(matrix: np.ndarray) -> bool:
    """Whether no direction is negative, but for rounding: a matrix of low rank times its transpose."""
    if len(matrix) > _SEMIDEFINITE_ROWS:
        return False
    lengths = np.linalg.eigvalsh(matrix)
    return bool(lengths[0] > -1e-5 * lengths[-1])


def is_structured(spec: TensorSpec, values: np.ndarray) -> bool:
    """Whether one draw looks like more than numbers drawn one by one.

    As a mask, something sorted, ends of intervals, shares, vectors of one length, or a matrix that
    repeats along its diagonals or mirrors itself with the other sign.
    """
    head = values[:_LOOKED_AT]
    if len(np.unique(head[:4096][head[:4096] != 0])) <= min(MASK_VALUES, values.size // 2):
        return True
    if values.size == np.prod(spec.shape) and _is_structured_across(spec, values):
        return True
    length = spec.shape[-1] if spec.shape else 0
    if length < 2 or values.size % length or length > head.size:
        return False
    rows = head[: head.size // length * length].reshape(-1, length).astype(np.float64)
    if length > 2 and _is_sorted(rows[:64], axis=1):
        return True
    rtol = 1e-2 if spec.dtype in HALF_DTYPES else 1e-4
    if len(rows) > 1 and any(_are_alike(sums, rtol) for sums in (rows.sum(axis=1), (rows**2).sum(axis=1))):
        return True
    if len(rows) < _SURE_ROWS or values.size != np.prod(spec.shape):
        return False
    if length <= _COLUMNS_OF_INTERVALS and any(
        (rows[:, low] <= rows[:, high]).all() or (rows[:, low] >= rows[:, high]).all()
        for high in range(length)
        for low in range(high)
    ):
        return True
    return any(_is_sorted(values.reshape(spec.shape), axis=axis) for axis in range(len(spec.shape) - 1))


def _is_structured_across(spec: TensorSpec, values: np.ndarray) -> bool:
    """Whether shares or vectors lie along another dimension than the last, or matrices have a pattern."""
    shape = spec.shape
    whole = values.reshape(shape)
    rtol = 1e-2 if spec.dtype in HALF_DTYPES else 1e-4
    for axis in range(len(shape) - 1):
        chosen = tuple(slice(None) if at == axis else slice(0, 8) for at in range(len(shape)))
        part = whole[chosen]
        if shape[axis] < 2 or part.size > _LOOKED_AT or part.size // shape[axis] < _FEW_VECTORS:
            continue
        numbers = part.astype(np.float64)
        if any(_are_alike(sums.reshape(-1), rtol) for sums in (numbers.sum(axis=axis), (numbers**2).sum(axis=axis))):
            return True
    if len(shape) < 2 or min(shape[-2:]) < _LEAST_PATTERN:
        return False
    matrices = whole.reshape(-1, *shape[-2:])[:, :64, :64]
    if (matrices[:, 1:, 1:] == matrices[:, :-1, :-1]).all():
        return True
    return shape[-1] == shape[-2] and bool((matrices == -np.swapaxes(matrices, 1, 2)).all())


def is_whole(_: TensorSpec, values: np.ndarray) -> bool:
    """Whether these are whole numbers kept as others, such as pixels, labels or counts."""
    head = values[:_LOOKED_AT]
    return values.size >= MASK_VALUES and bool((head == np.round(head)).all())


def is_mirrored(spec: TensorSpec, values: np.ndarray) -> bool:
    if len(spec.shape) < 2 or spec.shape[-1] != spec.shape[-2] or values.size != np.prod(spec.shape):
        return False
    matrix = values[: spec.shape[-1] ** 2].reshape(spec.shape[-2:])
    return spec.shape[-1] > 1 and np.array_equal(matrix, matrix.T)


def _is_sorted(values: np.ndarray, *, axis: int) -> bool:
    """Whether everything along this axis grows, or falls, where there is enough to tell that from chance."""
    chosen = tuple(slice(0, 64 if values.ndim <= 3 else 8) for _ in values.shape)
    steps = np.diff(values[chosen].astype(np.float64), axis=axis)
    if axis < values.ndim - 1 and steps.size < _SURE_ROWS:
        return False
    return bool((steps >= 0).all() or (steps <= 0).all())


def _are_alike(sums: np.ndarray, rtol: float) -> bool:
    return bool(np.allclose(sums, sums[0], rtol=rtol, atol=1e-6))
