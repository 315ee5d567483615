"""Weights that a trained model could have: near those that a constructor makes, and far from them."""

from collections.abc import Sequence

import numpy as np

from tasks.judge.equality import as_array, put_array
from tasks.judge.wire import TensorSpec, offsets

_NEGLIGIBLE, _NEGLIGIBLE_SHARE = 0.05, 0.01
_FILLED_SHARE = 0.2
_LEAST_PLACES, _GATES = 4, (3, 4)
_RADIUS, _STAYING, _OPEN = 0.995, 8.0, 3.0


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


def square_size(spec: TensorSpec) -> int:
    """How many places a state has that this may be the step of, square or one square for each gate; 0 if it is none."""
    if len(spec.shape) != 2 or not spec.dtype.startswith(("float", "bfloat")) or spec.shape[1] < _LEAST_PLACES:
        return 0
    return spec.shape[1] if spec.shape[0] in (times * spec.shape[1] for times in (1, *_GATES)) else 0


def lasting(
    state: np.ndarray,
    specs: Sequence[TensorSpec],
    names: Sequence[str],
    is_learned: Sequence[bool],
    rng: np.random.Generator,
    *,
    stays: bool,
    share: float,
) -> np.ndarray:
    """A copy of a model's state with which it forgets as little as can be from one step to the next.

    Square weights become orthogonal, of a radius just below 1, and gates of nn.LSTM and nn.GRU that keep are open.

    Args:
        stays: squares get a large diagonal instead, as of the logarithms of chances to stay where one is.
        share: what is left of weights and biases that lead into such a state, so that it is not flooded.
    """
    state = state.copy()
    sizes = [
        square_size(spec) if learned and "weight_ih" not in name else 0
        for spec, name, learned in zip(specs, names, is_learned, strict=True)
    ]
    lengths = {spec.shape[:1]: size for spec, size in zip(specs, sizes, strict=True) if size}
    for spec, start, learned, size in zip(specs, offsets(specs)[0], is_learned, sizes, strict=True):
        is_led_into = is_real(spec) and not spec.dtype.startswith("complex") and spec.shape[:1] in lengths
        if not learned or not is_led_into:
            continue
        values = as_array(state, spec, start).astype(np.float64)
        if not size:
            values *= share
            times = spec.shape[0] // lengths[spec.shape[:1]]
            if len(spec.shape) == 1 and times in _GATES:
                values.reshape(times, -1)[1] += _OPEN  # the second gate is that which keeps, in both
        elif stays and spec.shape[0] == size:
            values = share * values + _STAYING * np.eye(size).reshape(-1)
        elif not stays:
            values = np.concatenate([_turning(size, rng) for _ in range(spec.shape[0] // size)]).reshape(-1)
        put_array(state, spec, start, values)
    return state


def _turning(size: int, rng: np.random.Generator) -> np.ndarray:
    """An orthogonal matrix that leads each place to all others in turn, a little shrunk: a ring, seen in a mirror."""
    ring = np.zeros((size, size))
    order = rng.permutation(size)
    ring[order, np.roll(order, 1)] = _RADIUS
    mirror = rng.standard_normal(size)
    mirror /= np.sqrt(np.square(mirror).sum())
    return ring - 2.0 * np.outer(mirror, mirror @ ring)
