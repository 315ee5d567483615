"""The two processes of one judgement: the candidate's, and one of the reference that has the same history.

Both are asked the same things in the same order, also where only one answer matters: processes that allocated
differently in the past differ in speed by several percent for the rest of their lives.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from tasks.errors import WorkerError
from tasks.judge.processes import Failure, WorkerProcess
from tasks.judge.program import Program
from tasks.judge.screen import CLASS_NAME
from tasks.judge.study import CLASS_NAME as REFERENCE_NAME
from tasks.judge.study import FILE_NAME, LIMIT_S, Study
from tasks.judge.wire import DeadlineError, TensorSpec, WireError
from tasks.variants.candidate import Candidate

LATE_S = 0.05

Answer = TypeVar("Answer")


class Pair:
    """A candidate and its reference, each in a process of its own.

    Methods raise Failure, DeadlineError or WireError when the candidate fails, and WorkerError when the reference does,
    which a study has seen running.
    """

    def __init__(self, study: Study, spawn: Callable[[], WorkerProcess], *, seed: int, timeout_s: float) -> None:
        """Start the candidate's worker, not yet the reference's.

        Args:
            spawn: starts a worker whose arena holds one program of the problem.
            seed: makes the weights of both.
            timeout_s: how long the candidate may take for everything.
        """
        self._study = study
        self._spawn = spawn
        self._seed = seed
        self.candidate = Program(spawn(), study.layout)
        self._reference: Program | None = None
        self._deadline = time.monotonic() + timeout_s

    def load(self, candidate: Candidate) -> bool:
        """Load and build the candidate; returns whether the reference's weights fit it."""
        source, study = candidate.source, self._study
        self.candidate.load(source, filename="candidate.py", class_name=CLASS_NAME, deadline=self._deadline)
        state = self.candidate.build(self._seed, study.init_inputs, self._deadline)
        self.candidate.worker.ask("inputs", self._deadline, inputs=study.input_rows)
        forms = {name: [name, spec.dtype, list(spec.shape)] for name, spec, _ in state}
        return all(forms.get(row[0]) == row for row in study.state_rows)

    def rebuild(self, seed: int) -> None:
        """Make both models anew under another seed."""
        init_inputs = self._study.init_inputs
        self.candidate.build(seed, init_inputs, self._deadline)
        self._ask_reference(lambda reference, deadline: reference.build(seed, init_inputs, deadline))

    def load_state(self, state: np.ndarray) -> None:
        """Overwrite the weights of both in place."""
        rows = self._study.state_rows
        self.candidate.load_state(state, rows, self._deadline)
        self._ask_reference(lambda reference, deadline: reference.load_state(state, rows, deadline))

    def answer(
        self, block: np.ndarray, *, slot: int = 0, fresh: bool = False, hold: bool = False
    ) -> tuple[list[TensorSpec], np.ndarray, float]:
        """The candidate's outputs, and the ms they took."""
        return self.candidate.call(block, self._deadline, slot=slot, fresh=fresh, hold=hold)

    def truth(
        self, block: np.ndarray, *, slot: int = 0, fresh: bool = False, hold: bool = False
    ) -> tuple[np.ndarray, float]:
        """The reference's outputs, and the ms they took."""
        return self._ask_reference(
            lambda reference, deadline: reference.call(block, deadline, slot=slot, fresh=fresh, hold=hold)
        )[1:]

    def has_inputs(self, block: np.ndarray, *, slot: int) -> bool:
        """Whether the candidate's inputs still are what it was given."""
        at = self.candidate.layout.inputs_at[slot]
        return np.array_equal(self.candidate.worker.arena.read(at, block.size), block)

    def held_answer(self, *, slot: int) -> np.ndarray:
        """The candidate's held outputs as they are by now."""
        return self.candidate.recopy(self._deadline, slot=slot).outputs[0]

    def late_answer(self, num_bytes: int, *, slot: int) -> np.ndarray:
        """What stands in the place of the candidate's outputs a while after it answered."""
        self.candidate.worker.thaw()
        time.sleep(LATE_S)
        return self.candidate.worker.arena.read(self.candidate.layout.outputs_at[slot], num_bytes)

    def exchange_ms(self) -> float:
        """What it takes to ask for nothing and to copy the outputs of the held call."""
        return self._ask_reference(lambda reference, deadline: reference.recopy(deadline, slot=0)).taken_ms

    def compiled_frames(self) -> int:
        frames = self.candidate.worker.ask("loaded", self._deadline).get("compiled_frames")
        return frames if isinstance(frames, int) else 0

    def close(self) -> None:
        """End both processes."""
        self.candidate.worker.end()
        if self._reference is not None:
            self._reference.worker.end()

    def _ask_reference(self, question: Callable[[Program, float], Answer]) -> Answer:
        """Put a question to the reference, whose process starts when the candidate has answered for the first time."""
        asked_at = time.monotonic()
        deadline = asked_at + LIMIT_S
        try:
            if self._reference is None:
                self._reference = Program(self._spawn(), self._study.layout)
                self._load_reference(self._reference, deadline)
            return question(self._reference, deadline)
        except (Failure, WireError, DeadlineError) as error:
            raise WorkerError(
                f"the reference of {self._study.problem.problem_id} failed while judging: {error}"
            ) from error
        finally:
            self._deadline += time.monotonic() - asked_at  # a slow reference does not use up the candidate's time

    def _load_reference(self, reference: Program, deadline: float) -> None:
        study = self._study
        reference.load(study.problem.source, filename=FILE_NAME, class_name=REFERENCE_NAME, deadline=deadline)
        reference.build(self._seed, study.init_inputs, deadline)
        reference.worker.ask("inputs", deadline, inputs=study.input_rows)
