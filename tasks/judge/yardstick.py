"""How nearly the outputs of one problem must agree, from how exactly its reference computes."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np

from tasks.judge import equality
from tasks.judge.blocks import Blocks
from tasks.judge.close_look import CloseLook, compare_closely
from tasks.judge.wire import TensorSpec, offsets

PLAIN = "plain"
"""Inputs as get_inputs draws them; other distributions go by their own names."""
# Outputs for different inputs must differ by more than this multiple of the allowed error: else anything would pass.
LEAST_CHANGE = 4.0
# Where rounding alone changes this share of the output, a comparison tells nothing. Moved inputs are our choice, and
# must leave much less room.
MAX_OWN_ERRORS = {"fp32": (1e-2, 1e-4), "tf32": (3e-2, 1e-2), "fp16": (5e-2, 2e-2), "bf16": (1e-1, 5e-2)}
LOW_ERROR_OF_INPUTS = 2.0**-8
"""Of inputs that are written to, where less than single precision is computed in, whatever outputs tell of it."""
_HALVES = {"float16": "fp16", "bfloat16": "bf16"}


class Yardstick:
    """Compares outputs; knows the reference's own error for every distribution of inputs."""

    def __init__(
        self, specs: Sequence[TensorSpec], precision: str, *, turn: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Nothing is known yet.

        Args:
            turn: within it there is somewhere to compute with outputs.
        """
        self._turn = turn
        self._specs = specs
        self._is_strict = precision == "fp32"
        self._own_errors = {PLAIN: [equality.unknown_own_error(spec) for spec in specs]}
        names = {precision, *(_HALVES.get(spec.dtype, "fp32") for spec in specs)}
        plain, moved = zip(*(MAX_OWN_ERRORS[name] for name in names), strict=True)
        self._max_own_errors = max(plain), max(moved)

    @property
    def own_error_of_inputs(self) -> float:
        """What the reference may be off in inputs that it writes to: as much as in any output."""
        known = max(max(errors) for errors in self._own_errors.values())
        return known if self._is_strict else max(known, LOW_ERROR_OF_INPUTS)

    def learn(self, distribution: str, own_errors: Sequence[float]) -> bool:
        """Take up the reference's own error, unless it is so large that a comparison would tell nothing."""
        if max(own_errors) > self._max_own_errors[distribution != PLAIN]:
            return False
        self._own_errors[distribution] = list(own_errors)
        return True

    def compare(self, outputs: np.ndarray, truth: np.ndarray, distribution: str) -> equality.Comparison:
        """The usual comparison, on one scale per output."""
        with self._turn():
            return self._compared(outputs, truth, distribution)

    def quick_errors(self, outputs: Blocks, truths: Blocks, distribution: str) -> np.ndarray:
        """Of several outputs, as equality.quick_errors; to be asked within a turn."""
        return equality.quick_errors(outputs, truths, self._specs, self._own_errors[distribution])

    def compare_in_detail(
        self, outputs: np.ndarray, truth: np.ndarray, distribution: str
    ) -> tuple[equality.Comparison, bool]:
        """The usual comparison, and whether what it found equal is so in each row and in small values as well."""
        with self._turn():
            found = self._compared(outputs, truth, distribution)
            return found, found.is_equal and (not self._is_strict or self._agree(outputs, truth, distribution))

    def _compared(self, outputs: np.ndarray, truth: np.ndarray, distribution: str) -> equality.Comparison:
        return equality.compare(outputs, truth, self._specs, self._own_errors[distribution])

    def _agree(self, outputs: np.ndarray, truth: np.ndarray, distribution: str) -> bool:
        is_near = distribution != PLAIN or not equality.differ_grossly(outputs, truth, self._specs)
        return is_near and equality.rows_agree(outputs, truth, self._specs)

    def compare_closely(
        self, outputs: np.ndarray, truth: np.ndarray, look: CloseLook, distribution: str
    ) -> equality.Comparison:
        """The comparison that decides, knowing how exactly the reference computes on these very inputs."""
        by_value = self._is_strict and distribution == PLAIN
        with self._turn():
            return compare_closely(outputs, truth, self._specs, look, by_row=self._is_strict, by_value=by_value)

    def differing(self, one: np.ndarray, other: np.ndarray) -> list[bool]:
        """For each output whether it differs enough to be told apart."""
        found = []
        for spec, start, own_error in zip(self._specs, offsets(self._specs)[0], self._own_errors[PLAIN], strict=True):
            ours, theirs = (block[start : start + spec.num_bytes] for block in (one, other))
            with self._turn():
                found.append(equality.compare(ours, theirs, [spec], [own_error]).max_error > LEAST_CHANGE)
        return found
