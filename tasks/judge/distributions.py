"""Inputs that a candidate has not seen: other than get_inputs makes, but still valid for the problem.

What is valid is read off several draws of the problem itself: a value with both signs may be scaled and negated, one
between two bounds stays between them, zeros stay zeros, what mirrors itself keeps doing so, and what has a structure
(masks, an order, sorted rows, rows that sum to one, ends of intervals, positive definite matrices; structure.py) is
only ever drawn afresh. Some distributions leave that range, for references that compute just as well there: past the
bounds, signs where none were negative, other whole numbers, and other values where all were equal.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tasks.judge.blocks import of_all, on_host, place_of, random_integers
from tasks.judge.equality import as_array, put_array
from tasks.judge.rings import Ring, ring_of, ringed
from tasks.judge.structure import (
    BYTE_DTYPES,
    HALF_DTYPES,
    WHOLE_DTYPES,
    is_added_mask,
    is_definite,
    is_hermitian,
    is_in_order,
    is_mask,
    is_mirrored,
    is_structured,
    is_whole,
    length_of_places,
    may_be_others,
    may_vary,
)
from tasks.judge.wire import TensorSpec, offsets

MISSING, INFINITE = ("missing", "few_missing"), ("infinite", "few_infinite")
FARTHER_PLACES = "farther_places"
RINGS = "rings"
"""For square matrices, where a reference does something again and again."""
NOWHERE = "nowhere"
"""Places that hardly a table has: what a reference takes all the same are none. Never asked for on a device."""
_FARTHER = 4
_NO_PLACE = 1 << 28
_FEW_ROWS = 4
_MOVED_DTYPES = ("float32", "float64", "bool", *WHOLE_DTYPES, *HALF_DTYPES)
_REAL_DTYPES = {"complex64": "float32", "complex128": "float64"}
_OUTLIER_SHARE = 1 / 512
_FEW = 2
_TRIED_PLACES = 1024
_OUTLIER_FACTOR, _END_FACTOR = 30.0, 25.0
_LARGE, _SMALL = 10.0, 0.01
_BEYOND = 8.0
_SHIFT = 5.0
_MIXED_SHARES = 0.8, 0.98
# Which of the lowest bits of a mantissa are given, and what they are: a one, or 100, where each format ends.
_PATTERN_32 = (0b1111_0000_1000_0000, 0b1001_0000_1000_0000)
_PATTERN_64 = (_PATTERN_32[0] << 29 | 1 << 28, _PATTERN_32[1] << 29 | 1 << 28)


@dataclass(frozen=True, kw_only=True, slots=True)
class Domain:
    """Which values one input may take, as far as its draws tell."""

    kind: Literal["signed", "bounded", "whole", "constant", "fixed"]
    low: float = 0.0
    high: float = 0.0
    is_mirrored: bool = False
    """A matrix that equals its transpose; every value is then moved alike."""
    ring: Ring | None = None
    """What square matrices keep that become rings, also where nothing else of them may be moved."""

    @property
    def nearest_to_zero(self) -> float:
        """Of all values that it may take."""
        return max(self.low, min(0.0, self.high))


def items(block: np.ndarray, spec: TensorSpec, start: int) -> np.ndarray:
    """The tensor's memory within a block, flat and typed: a view, but a copy of float32 for half precision."""
    values = as_array(block, spec, start)
    return values.astype(np.float32) if spec.dtype in HALF_DTYPES else values


def in_reals(spec: TensorSpec) -> TensorSpec:
    """The form of the same memory as real numbers: of complex ones, two in place of each, in a last dimension.

    >>> in_reals(TensorSpec.from_json(["complex64", [3, 4]])).to_json()
    ['float32', [3, 4, 2], [8, 2, 1]]
    """
    dtype = _REAL_DTYPES.get(spec.dtype)
    if dtype is None:
        return spec
    return TensorSpec(dtype=dtype, shape=(*spec.shape, 2), stride=(*(2 * step for step in spec.stride), 1))


def domains(blocks: Sequence[np.ndarray], specs: Sequence[TensorSpec]) -> list[Domain]:
    """What several draws of the inputs say about each of them.

    Args:
        blocks: on the host.
    """
    found = []
    for spec, start in zip(specs, offsets(specs)[0], strict=True):
        is_moved = spec.dtype in _MOVED_DTYPES or spec.dtype in _REAL_DTYPES
        if not is_moved or is_hermitian(spec, as_array(blocks[0], spec, start)):
            found.append(Domain(kind="fixed"))
        else:
            real = in_reals(spec)
            draws = [items(block, real, start) for block in blocks]
            where = domain(real, draws)
            found.append(replace(where, ring=_ring(real, draws, where)))
    return found


def _ring(spec: TensorSpec, draws: Sequence[np.ndarray], where: Domain) -> Ring | None:
    if where.kind == "constant" or not spec.num_items:
        return None
    low, high = float(min(draw.min() for draw in draws)), float(max(draw.max() for draw in draws))
    return ring_of(spec, draws, where.kind, low=low, high=high) if np.isfinite([low, high]).all() else None


def domain(spec: TensorSpec, draws: Sequence[np.ndarray]) -> Domain:
    """What several draws of one input say about it.

    Args:
        draws: the tensor's memory in each draw, flat.
    """
    fixed = Domain(kind="fixed")
    if not spec.num_items:
        return fixed
    low, high = float(min(draw.min() for draw in draws)), float(max(draw.max() for draw in draws))
    is_constant = all(np.array_equal(draw, draws[0]) for draw in draws)
    if is_constant and is_added_mask(draws[0]):
        return Domain(kind="constant", low=low, high=0.0)
    if not (np.isfinite(low) and np.isfinite(high)):
        return fixed
    if is_constant:
        return Domain(kind="constant", low=low, high=high) if may_vary(spec, draws[0], low, high) else fixed
    if spec.dtype in WHOLE_DTYPES and may_be_others(spec, draws):
        return Domain(kind="whole", low=low, high=high)
    if (
        spec.dtype == "bool"
        or spec.dtype in WHOLE_DTYPES
        or any(all(has(spec, draw) for draw in draws) for has in (is_structured, is_definite, is_whole))
    ):
        return fixed
    kind: Literal["signed", "bounded"] = "signed" if low < 0 < high else "bounded"
    return Domain(kind=kind, low=low, high=high, is_mirrored=is_mirrored(spec, draws[0]))


def transformed(
    block: np.ndarray, specs: Sequence[TensorSpec], domains: Sequence[Domain], name: str, rng: np.random.Generator
) -> np.ndarray:
    """A copy of the inputs in one block, moved to another part of their domains."""
    block = block.copy()
    for spec, start, where in zip(map(in_reals, specs), offsets(specs)[0], domains, strict=True):
        if where.ring is None if name == RINGS else where.kind == "fixed" or (where.is_mirrored and name not in _ALIKE):
            continue
        if name in _MOVES_OF.get(where.kind, _MOVES_OF_NUMBERS):
            values = items(block, spec, start)
            zeros = values == 0
            values[:] = np.asarray(_MOVES[name](values, spec, where, rng), like=values)
            if where.kind not in _MOVES_OF and name != RINGS:
                values[zeros] = 0
            if spec.dtype in HALF_DTYPES:
                put_array(block, spec, start, values)
    return block


def mixed(
    one: np.ndarray, other: np.ndarray, specs: Sequence[TensorSpec], domains: Sequence[Domain], rng: np.random.Generator
) -> np.ndarray | None:
    """Every value that of one draw or of another in the same place, by the toss of a coin, and a little smaller.

    By how much is drawn anew for each value, or results for values that were seen before in their places could be
    looked up, and multiplied. Takes a small part of the time of a draw, and is about as far from either as they are
    from each other. Nothing where a tensor has a structure, which is only ever drawn afresh.
    """
    all_places = zip(map(in_reals, specs), offsets(specs)[0], domains, strict=True)
    places = [place for place in all_places if place[0].num_items]
    if any(where.kind in ("fixed", "whole") or spec.dtype in HALF_DTYPES for spec, _, where in places):
        return None
    block = one.copy()
    for spec, start, where in places:
        if where.kind == "constant":
            continue
        values = items(block, spec, start)
        tossed = random_integers(rng, 256, values, np.uint8)
        if where.is_mirrored:
            upper = np.triu(tossed.reshape(spec.shape), 1)
            tossed = (upper + np.swapaxes(upper, -1, -2)).reshape(-1)
        values[:] = np.where(tossed % 2 == 1, items(other, spec, start), values)
        values -= where.nearest_to_zero
        shares = (tossed // 2).astype(values.dtype)  # 0 to 127, as the other bits are
        shares *= (_MIXED_SHARES[1] - _MIXED_SHARES[0]) / 128 * rng.uniform(0.9, 1.0)
        shares += _MIXED_SHARES[0]
        values *= shares
        values += where.nearest_to_zero
    return block


def _negated(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    # A draw may lie a little outside of what the first ones showed, and its mirror image outside of what is valid.
    return -values if where.kind == "signed" else np.clip(where.low + where.high - values, where.low, where.high)


def _large(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    return values * _LARGE if where.kind == "signed" else where.high - (where.high - values) / _LARGE


def _small(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    return values * _SMALL if where.kind == "signed" else where.low + _SMALL * (values - where.low)


def _beyond(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    """Eight times as far from the bound that is nearer to zero: past the other one, which may be the draws' alone."""
    if where.kind == "signed":
        return values
    start = where.nearest_to_zero
    return start + _BEYOND * (values - start)


def _raised(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    """All above zero, as what a model computes often is."""
    return values + _shift(values) if where.kind == "signed" else values


def _lowered(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    return values - _shift(values) if where.kind == "signed" else values


def _shift(values: np.ndarray) -> float:
    return _SHIFT * float(np.sqrt(of_all(np.sum, np.square(values, dtype=np.float64)) / values.size))


def _missing(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    """Some that are no numbers: for references that say what becomes of those."""
    chosen = rng.integers(0, values.size, max(1, int(values.size * _OUTLIER_SHARE)))
    changed = values.copy()
    changed[np.asarray(chosen, like=values)] = np.nan
    return changed


def _few_missing(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    """So few that hardly a sample of the values finds them."""
    changed = values.copy()
    changed[_few_places(values, rng)] = np.nan
    return changed


def _infinite(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    """Some of both signs that are infinite: for references that ask for those."""
    changed = values.copy()
    for value in (np.inf, -np.inf):
        chosen = rng.integers(0, values.size, max(1, int(values.size * _OUTLIER_SHARE)))
        changed[np.asarray(chosen, like=values)] = value
    return changed


def _few_infinite(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    changed = values.copy()
    for place, value in zip(_few_places(values, rng), (np.inf, -np.inf), strict=False):
        changed[place] = value
    return changed


def _few_places(values: np.ndarray, rng: np.random.Generator) -> list[int]:
    """Anywhere, but not at zeros where there is enough else, since those stay."""
    tried = np.unique(rng.integers(0, values.size, _TRIED_PLACES))
    rng.shuffle(tried)
    is_zero = on_host(values[np.asarray(tried, like=values)] == 0)
    found: list[int] = tried[np.argsort(is_zero, kind="stable")][:_FEW].tolist()
    return found


def _other_whole(values: np.ndarray, spec: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    """Any bytes, where the draws show many; of others, which may be places, those down to 1."""
    if spec.dtype in BYTE_DTYPES:
        return random_integers(rng, 256, values) + np.iinfo(spec.dtype).min
    if where.low <= 1:
        return values
    return np.asarray(rng.integers(1, int(where.high) + 1, values.size), like=values)


def _farther_places(values: np.ndarray, spec: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    """Places in a table that is larger than the draws show, if they are such."""
    if spec.dtype in BYTE_DTYPES or where.low > 1:
        return values
    return np.asarray(rng.integers(int(where.low), _FARTHER * (int(where.high) + 1), values.size), like=values)


def _nowhere(values: np.ndarray, spec: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    if spec.dtype in BYTE_DTYPES or where.low > 1:
        return values
    return np.full_like(values, min(_NO_PLACE, np.iinfo(spec.dtype).max))


def _outliers(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    chosen = np.asarray(rng.integers(0, values.size, max(1, int(values.size * _OUTLIER_SHARE))), like=values)
    changed = values.copy()
    if where.kind == "signed":
        changed[chosen] *= _OUTLIER_FACTOR
        # The ends are always among them: what overflows for few values only must do so in every draw.
        ends = _ends(values)
        changed[ends] = values[ends] * _END_FACTOR
    else:
        ends_chosen = np.where(rng.random(chosen.size) < 0.5, where.low, where.high)
        changed[chosen] = np.asarray(ends_chosen, like=values)
    return changed


def _few_outliers(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    """The ends alone, so that hardly a sample of the values finds one."""
    changed = values.copy()
    if where.kind == "signed":
        changed[_ends(values)] *= _END_FACTOR
    return changed


def _few_beyond(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    """As far as beyond, but of all values that which is farthest from zero alone."""
    changed = values.copy()
    if where.kind != "signed":
        start = where.nearest_to_zero
        farthest = _ends(values)[where.high - start >= start - where.low]
        changed[farthest] = start + _BEYOND * (values[farthest] - start)
    return changed


def _ends(values: np.ndarray) -> list[int]:
    """Where the least and the largest value are."""
    return [place_of(np.argmin, values), place_of(np.argmax, values)]


def one_sided(values: np.ndarray, spec: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    """Values that rounding to 8, 11, 16 or 24 bits moves away from zero, every one of them, by up to one part in 200.

    Who rounds operands is off by the same share everywhere then, and no average hides it. To those who do not they are
    numbers like any others: there are no ties, and sums err as usual.
    """
    if spec.dtype in HALF_DTYPES:  # nothing is left of so few bits
        return values
    is_single = values.dtype == np.float32
    width, (given, ones) = (16, _PATTERN_32) if is_single else (45, _PATTERN_64)
    bits = values.view(np.int32 if is_single else np.int64).astype(np.int64)
    noise = random_integers(rng, 1 << width, values)
    bits = (bits & ~((1 << width) - 1)) | (noise & ~given) | ones
    changed = bits.astype(np.int32 if is_single else np.int64).view(values.dtype)
    return changed if where.kind == "signed" else np.clip(changed, where.low, where.high)


def _signs(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    if where.kind == "signed":
        return values
    return np.where(random_integers(rng, 2, values, np.uint8) == 1, values, -values)


def _rare_signs(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    """In one quarter only, so that no look at some rows finds them, and enough for a mean to show them."""
    changed = values.copy()
    if where.kind == "bounded":
        quarter = values.size // 4
        start = rng.integers(1, 4) * quarter
        chosen = start + rng.integers(0, max(quarter, 1), max(1, int(quarter * _OUTLIER_SHARE)))
        changed[np.asarray(chosen, like=values)] *= -1
    return changed


def _few_signs(values: np.ndarray, _: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    changed = values.copy()
    if where.kind == "bounded":
        changed[_few_places(values, rng)] *= -1
    return changed


def _unlike_constants(values: np.ndarray, spec: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    """Where every draw was the same: another mask for a mask, a little noise for zeros, places in another order.

    Whole numbers that are all alike become less by one here and there, which still is a place or a number of something,
    and zeros more by one.
    """
    values = on_host(values)
    is_uniform = where.low == where.high
    if is_added_mask(values):
        return np.where(_holes(values, spec, rng), values.dtype.type(0), values.dtype.type(where.low))
    if spec.dtype == "bool" or (is_mask(values) and not (is_uniform and where.low == 0.0)):
        return np.where(_holes(values, spec, rng), where.high, 1 - where.high)
    if spec.dtype in WHOLE_DTYPES:
        if not is_uniform:
            return rng.permuted(values.reshape(-1, length_of_places(spec, values)), axis=1).reshape(-1)
        steps = rng.integers(0, 2, values.size).astype(values.dtype)
        return values - steps if where.low > 0 else values + steps
    if is_in_order(spec, values):
        rows = values.reshape(-1, spec.shape[-1])
        steps = np.diff(rows, axis=1) * rng.uniform(0.5, 1.5, (len(rows), rows.shape[1] - 1))
        steps *= (rows[:, -1:] - rows[:, :1]) / steps.sum(axis=1, keepdims=True)
        return np.concatenate([rows[:, :1], rows[:, :1] + np.cumsum(steps, axis=1)], axis=1).reshape(-1)
    if where.low == 0.0:
        return rng.normal(0.0, 0.1, values.size)
    return values * rng.uniform(0.8, 1.25, values.size)


def _few_unlike_constants(values: np.ndarray, spec: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    """Other masks in a few rows only, neither the first nor the last, so that no look at some of them tells."""
    values = on_host(values)
    length = _row_length(values, spec)
    rows = values.reshape(-1, length)
    if len(rows) < _FEW_ROWS or not (spec.dtype == "bool" or is_mask(values) or is_added_mask(values)):
        return values
    changed = rows.copy()
    start = rng.integers(1, len(rows) - 1)
    stop = min(len(rows) - 1, start + max(1, len(rows) // 8))
    changed[start:stop] = _unlike_constants(values, spec, where, rng).reshape(rows.shape)[start:stop]
    return changed.reshape(-1)


def _row_length(values: np.ndarray, spec: TensorSpec) -> int:
    return spec.shape[-1] if spec.shape and values.size % spec.shape[-1] == 0 else 1


def _holes(values: np.ndarray, spec: TensorSpec, rng: np.random.Generator) -> np.ndarray:
    """Which values of another mask are in: bool like the values, some in every row, and not all where it is longer."""
    kept = rng.integers(0, 2, values.size).astype(bool)
    rows = kept.reshape(-1, _row_length(values, spec))
    length, every = rows.shape[1], np.arange(len(rows))
    places = rng.integers(0, length, len(rows))
    if length > 1:
        rows[every, (places + rng.integers(1, length, len(rows))) % length] = False
    rows[every, places] = True
    return kept


def _ringed(values: np.ndarray, spec: TensorSpec, where: Domain, rng: np.random.Generator) -> np.ndarray:
    return values if where.ring is None else ringed(on_host(values), spec, where.ring, rng)


_Move = Callable[[np.ndarray, TensorSpec, Domain, np.random.Generator], np.ndarray]
_MOVES: dict[str, _Move] = {
    "one_sided": one_sided,
    "unlike_constants": _unlike_constants,
    "signs": _signs,
    "large": _large,
    "outliers": _outliers,
    "raised": _raised,
    "missing": _missing,
    "few_missing": _few_missing,
    "infinite": _infinite,
    "few_infinite": _few_infinite,
    RINGS: _ringed,
    "other_whole": _other_whole,
    "small": _small,
    "rare_signs": _rare_signs,
    "few_signs": _few_signs,
    "few_outliers": _few_outliers,
    "beyond": _beyond,
    "few_beyond": _few_beyond,
    FARTHER_PLACES: _farther_places,
    NOWHERE: _nowhere,
    "lowered": _lowered,
    "few_unlike_constants": _few_unlike_constants,
    "negated": _negated,
}
_MOVES_OF: dict[str, tuple[str, ...]] = {
    "constant": ("unlike_constants", "few_unlike_constants"),
    "whole": ("other_whole", FARTHER_PLACES, NOWHERE),
}
_MOVES_OF_NUMBERS = tuple(name for name in _MOVES if not any(name in names for names in _MOVES_OF.values()))
ON_HOST = ("beyond", "few_beyond", "other_whole", FARTHER_PLACES)
"""Moves that may lead out of a table, which ends a process that uses a device."""
FAR = ("beyond", "few_beyond", "raised", "lowered", RINGS)
"""Moves that lead where a problem may lose its meaning, such as a loss that is nothing."""
_ALIKE = ("negated", "large", "small", "beyond", "raised", "lowered")
"""Moves that leave equal values equal."""
DISTRIBUTIONS = tuple(name for name in _MOVES if name != NOWHERE)
"""The most telling first."""
NUM_TELLING = 1 + DISTRIBUTIONS.index("other_whole")
"""Of these: they come however long a reference takes."""
