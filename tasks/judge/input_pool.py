"""The inputs of one problem: drawn by its reference, kept for the next candidate, or moved to where no draw was."""

import random
from collections.abc import Sequence

import numpy as np

from tasks.judge.distributions import domains, mixed, transformed
from tasks.judge.program import Arguments
from tasks.judge.reference import BadProblemError, Reference

NUM_STUDIED = 3
MIXED_BYTES = 8 << 20
"""Inputs larger than this take longer to draw than most programs take to compute with them."""
PLACED_AT_ONCE = 32
"""Draws that are brought to a device in one turn of it, where they are small: others wait for it, or are disturbed."""


class InputPool:
    """Draws that no candidate can know, since none sees what another saw."""

    form: Arguments
    """Of every draw; the bytes are those of the first."""
    must_draw = False
    """Whether the reference does not take inputs made of two draws, such as matrices that must be positive definite."""

    def __init__(self, reference: Reference, *, max_bytes: int) -> None:
        """Draw the first inputs.

        Args:
            max_bytes: how much is kept.

        Raises:
            BadProblemError: if the draws differ in more than the values of tensors and numbers.
        """
        self._reference = reference
        self._max_bytes = max_bytes
        self._secret = random.SystemRandom()
        self._carries_numbers = False
        draws = [self._draw() for _ in range(NUM_STUDIED)]
        if any(draw.tree != draws[0].tree for draw in draws):
            self._carries_numbers = True  # such as a temperature that is drawn like the tensors
            draws = [self._draw() for _ in range(NUM_STUDIED)]
        self.form = draws[0]
        on_host = [self._block(draw) for draw in draws]
        self._domains = domains(on_host, self.form.specs)
        self._worker = reference.worker
        self.blocks = self._placed(on_host)

    @property
    def num_placed_at_once(self) -> int:
        """How many draws are to be brought to a device together; one where they are large."""
        return max(1, min(PLACED_AT_ONCE, MIXED_BYTES // self.blocks[0].size))

    def draw(self, count: int = 1) -> list[np.ndarray]:
        """New inputs, kept while there is room.

        Raises:
            BadProblemError: if they have another form.
        """
        drawn = self._placed([self._block(self._draw()) for _ in range(count)])
        self.blocks += drawn[: max(0, self._max_bytes // drawn[0].size - len(self.blocks))]
        return drawn

    def mixed(self, rng: np.random.Generator) -> np.ndarray | None:
        """Large inputs that nobody has seen, made of two draws; nothing where they must be drawn."""
        if self.blocks[0].size < MIXED_BYTES or self.must_draw:
            return None
        one, other = rng.choice(len(self.blocks), size=2, replace=False)
        with self._worker.referees_turn():
            return mixed(self.blocks[one], self.blocks[other], self.form.specs, self._domains, rng)

    def transformed(self, block: np.ndarray, distribution: str, rng: np.random.Generator) -> np.ndarray:
        """A copy of a draw, moved to another part of what is valid."""
        with self._worker.referees_turn():
            return transformed(block, self.form.specs, self._domains, distribution, rng)

    def _placed(self, drawn: Sequence[np.ndarray]) -> list[np.ndarray]:
        with self._worker.referees_turn():
            return [self._worker.arena.placed(block) for block in drawn]

    def _draw(self) -> Arguments:
        return self._reference.draw(self._secret.getrandbits(60), carries_numbers=self._carries_numbers)

    def _block(self, draw: Arguments) -> np.ndarray:
        if (draw.specs, draw.tree) != (self.form.specs, self.form.tree):
            raise BadProblemError("get_inputs returns other shapes, or other kinds of values, at other calls")
        return draw.block
