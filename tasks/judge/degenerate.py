"""Answers that need no work: if one of them passes, a problem teaches to cheat."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tasks.judge.blocks import of_all
from tasks.judge.equality import as_array, put_array
from tasks.judge.wire import TensorSpec, offsets


def effortless_answers(
    outputs: np.ndarray, other: np.ndarray, specs: Sequence[TensorSpec]
) -> Iterator[tuple[str, np.ndarray]]:
    """What each is called, and its bytes.

    Args:
        outputs: the right ones.
        other: the right ones for other inputs.
    """
    yield "the answer to other inputs", other
    yield "zeros", np.zeros_like(outputs)
    yield "ones", _filled(outputs, specs, lambda _: 1.0)
    if any(spec.num_items > 1 for spec in specs):
        yield "the mean of the output", _filled(outputs, specs, _mean)


def _mean(values: np.ndarray) -> float:
    return float(of_all(np.sum, values.astype(np.float64))) / values.size


def _filled(outputs: np.ndarray, specs: Sequence[TensorSpec], value: Callable[[np.ndarray], float]) -> np.ndarray:
    filled = outputs.copy()
    for spec, start in zip(specs, offsets(specs)[0], strict=True):
        if spec.num_items:
            values = as_array(outputs, spec, start)
            with np.errstate(all="ignore"):
                put_array(filled, spec, start, np.full_like(values, np.nan_to_num(value(values)), dtype=np.float64))
    return filled
