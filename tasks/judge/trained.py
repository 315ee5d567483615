"""Weights that a trained model could have: near those that a constructor makes, and far from them."""

from collections.abc import Sequence

import numpy as np

from tasks.judge.equality import as_array, put_array
from tasks.judge.wire import TensorSpec, offsets

_NEGLIGIBLE, _NEGLIGIBLE_SHARE = 0.05, 0.01
_FILLED_SHARE = 0.2


def is_real(spec: TensorSpec) -> bool:
    """Whether there are real numbers in it, or pairs of them, which is what training changes here."""
    return spec.dtype.startswith(("float", "bfloat", "complex")) and spec.num_items > 0


def has_gaps(values: np.ndarray) -> bool:
    """Whether some are zero and all others have one sign, as of an identity matrix that training starts from."""
    return bool(values.any()) and not values.all() and not values.min() < 0 < values.max()


def _filled(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same, with small values of the others' sign for zeros.

    All of them together are no more than the others are, so that what goes through many such layers stays finite.
    """
    if not has_gaps(values):
        return values
    is_zero = values == 0
    size = min(_FILLED_SHARE * float(np.sqrt(np.square(values).mean())), abs(float(values.sum())) / is_zero.sum())
    sign = 1.0 if values.max() > 0 else -1.0
    return np.where(is_zero, sign * size * rng.uniform(0.5, 1.5, values.shape), values)


def perturbed(
    state: np.ndarray,
    specs: Sequence[TensorSpec],
    is_free: Sequence[bool],
    rng: np.random.Generator,
    *,
    is_filled: Sequence[bool],
) -> np.ndarray:
    """A copy of a model's state that a trained model could have.

    Values are multiplied by factors near 1, and get noise where they have both signs or are all zero; what is never
    negative, such as a variance, stays so. Small factors that are all the same become large ones.

    Args:
        is_free: per tensor, whether it may change; constants such as a causal mask may not.
        is_filled: per tensor, whether zeros among values of one sign become others, as training makes them.
    """
    state = state.copy()
    for spec, start, free, filled in zip(specs, offsets(specs)[0], is_free, is_filled, strict=True):
        if not free or not is_real(spec):
            continue
        values = as_array(state, spec, start).astype(np.float64)
        if filled:
            values = _filled(values, rng)
        if values.size > 1 and 0 < abs(values[0]) < _NEGLIGIBLE and (values == values[0]).all():
            changed = rng.uniform(0.5, 1.5, values.shape)  # what hangs on it must show
        else:
            changed = values * rng.uniform(0.8, 1.25, values.shape)
            if values.min() < 0 < values.max() or not values.any():
                changed += rng.normal(0.0, 0.2 * float(values.std()) or 0.1, values.shape)
        put_array(state, spec, start, changed)
    return state


def strengthened(
    state: np.ndarray,
    specs: Sequence[TensorSpec],
    is_learned: Sequence[bool],
    rng: np.random.Generator,
    *,
    factor: float,
    with_signs: bool,
    is_filled: Sequence[bool],
) -> np.ndarray:
    """A copy of a model's state as after long training: what is learned is larger, and nothing of it is small.

    Args:
        factor: how much larger; by what is drawn beside it, half as much to twice as much.
        with_signs: also those that all have one sign get both.
        is_filled: as for perturbed.
    """
    state = state.copy()
    for spec, start, learned, filled in zip(specs, offsets(specs)[0], is_learned, is_filled, strict=True):
        if not learned or not is_real(spec):
            continue
        values = as_array(state, spec, start).astype(np.float64)
        if filled:
            values = _filled(values, rng)
        size = float(np.sqrt(np.square(values).mean()))
        fan_in = max(1, spec.num_items // spec.shape[0]) if len(spec.shape) > 1 else 1
        usual = 1 / np.sqrt(fan_in)
        if not size:
            values = rng.normal(0.0, 0.5 * usual, values.shape)
        else:
            values *= max(factor, usual / size if size < _NEGLIGIBLE_SHARE * usual else 0.0)
            values *= rng.uniform(0.5, 2.0, values.shape)
        if with_signs and (values.min() >= 0 or values.max() <= 0):
            values *= rng.choice((-1.0, 1.0), values.shape)
        put_array(state, spec, start, values)
    return state
