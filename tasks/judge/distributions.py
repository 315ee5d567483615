"""Inputs and weights that a candidate has not seen: other than get_inputs makes, but still valid for the problem.

What is valid is read off several draws of the problem itself: a value with both signs may be scaled and negated, one
between two bounds stays between them, and what has a structure (integers, masks, sorted rows, rows that sum to one) is
only ever drawn afresh.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.judge.wire import TensorSpec, offsets

DISTRIBUTIONS = ("negated", "large", "small", "outliers", "few_values")
_TRANSFORMED_DTYPES = {"float32": np.float32, "float64": np.float64}
_OUTLIER_SHARE = 1 / 512
_OUTLIER_FACTOR = 30.0
_MASK_VALUES = 8
_CHUNKS, _LEVELS = 16, 3
_ZERO_SHARE = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Domain:
    """Which values one input may take, as far as its draws tell."""

    kind: Literal["signed", "bounded", "fixed"]
    low: float = 0.0
    high: float = 0.0


def items(block: np.ndarray, spec: TensorSpec, start: int) -> np.ndarray:
    """The tensor's memory within a block, flat and typed; a view."""
    return block[start : start + spec.num_bytes].view(_TRANSFORMED_DTYPES[spec.dtype])


def domain(spec: TensorSpec, draws: Sequence[np.ndarray]) -> Domain:
    """What several draws of one input say about it.

    Args:
        draws: the tensor's memory in each draw, flat; ignored for dtypes that are never transformed.
    """
    fixed = Domain(kind="fixed")
    if spec.dtype not in _TRANSFORMED_DTYPES or not spec.num_items:
        return fixed
    values = np.stack(draws).astype(np.float64)
    low, high = float(values.min()), float(values.max())
    if not (np.isfinite(low) and np.isfinite(high)) or low == high or _is_structured(spec, values[0]):
        return fixed
    return Domain(kind="signed" if low < 0 < high else "bounded", low=low, high=high)


def transformed(
    block: np.ndarray, specs: Sequence[TensorSpec], domains: Sequence[Domain], name: str, rng: np.random.Generator
) -> np.ndarray:
    """A copy of the inputs in one block, moved to another part of their domains."""
    block = block.copy()
    for spec, start, where in zip(specs, offsets(specs)[0], domains, strict=True):
        if where.kind != "fixed":
            values = items(block, spec, start)
            if name == "few_values":
                values[:] = _few_values(values, rng)
                continue
            values[:] = (_signed if where.kind == "signed" else _bounded)(values, where, name, rng)
    return block


def perturbed(
    state: np.ndarray, specs: Sequence[TensorSpec], is_free: Sequence[bool], rng: np.random.Generator
) -> np.ndarray:
    """A copy of a model's state that a trained model could have.

    Values are multiplied by factors near 1, and get noise where they have both signs or are all zero; what is never
    negative, such as a variance, stays so.

    Args:
        is_free: per tensor, whether it may change; constants such as a causal mask may not.
    """
    state = state.copy()
    for spec, start, free in zip(specs, offsets(specs)[0], is_free, strict=True):
        if not free or spec.dtype not in _TRANSFORMED_DTYPES or not spec.num_items:
            continue
        values = items(state, spec, start)
        changed = values * rng.uniform(0.8, 1.25, values.shape)
        spread = float(values.std())
        if values.min() < 0 < values.max() or not values.any():
            changed += rng.normal(0.0, 0.2 * spread or 0.1, values.shape)
        values[:] = changed
    return state


def _signed(values: np.ndarray, _: Domain, name: str, rng: np.random.Generator) -> np.ndarray:
    if name == "negated":
        return -values
    if name == "large":
        return values * 10
    if name == "small":
        return values * 0.1
    return np.where(_outliers(values, rng), values * _OUTLIER_FACTOR, values)


def _bounded(values: np.ndarray, where: Domain, name: str, rng: np.random.Generator) -> np.ndarray:
    if name == "negated":
        changed = where.low + where.high - values
    elif name == "large":
        changed = where.high - 0.1 * (where.high - values)
    elif name == "small":
        changed = where.low + 0.1 * (values - where.low)
    else:
        ends = np.where(rng.random(values.shape) < 0.5, where.low, where.high)
        changed = np.where(_outliers(values, rng), ends, values)
    return np.clip(changed, where.low, where.high)


def _few_values(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Every stretch of memory with three of its values only.

    Rounding to fewer bits is then off by the same amount many times over, and averages no longer hide it.
    """
    chunks = [
        rng.choice(rng.choice(chunk, _LEVELS), chunk.size) for chunk in np.array_split(values, _CHUNKS) if chunk.size
    ]
    return np.concatenate(chunks)


def _outliers(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    chosen = np.zeros(values.shape, dtype=bool)
    chosen[rng.integers(0, values.size, max(1, int(values.size * _OUTLIER_SHARE)))] = True
    return chosen


def _is_structured(spec: TensorSpec, values: np.ndarray) -> bool:
    """Whether one draw looks like a mask, a triangle, a sparse or sorted array, or a table of probabilities."""
    if len(np.unique(values[:4096])) <= min(_MASK_VALUES, values.size // 2):
        return True
    if (values == 0).mean() > _ZERO_SHARE:
        return True
    if not spec.shape or spec.shape[-1] < 3 or values.size % spec.shape[-1]:
        return False
    rows = values.reshape(-1, spec.shape[-1])
    steps = np.diff(rows[:64], axis=1)
    sums = rows.sum(axis=1)
    is_sorted = bool((steps >= 0).all() or (steps <= 0).all())
    return is_sorted or (len(sums) > 1 and bool(np.allclose(sums, sums[0], rtol=1e-4, atol=1e-6)))
