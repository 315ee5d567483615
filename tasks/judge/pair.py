"""The two processes of one judgement: the candidate's, and one of the reference that has the same history.

Both are asked the same things in the same order, also where only one answer matters: processes that allocated
differently in the past differ in speed by several percent for the rest of their lives.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from tasks.errors import WorkerError
from tasks.judge import equality
from tasks.judge.processes import Failure, WorkerProcess
from tasks.judge.program import MIN_SLOTS, Answers, Layout, Program, StateRow
from tasks.judge.reference import refusal
from tasks.judge.screen import CLASS_NAME
from tasks.judge.study import CLASS_NAME as REFERENCE_NAME
from tasks.judge.study import FILE_NAME, LIMIT_S, Study
from tasks.judge.timing import MAX_CALLS
from tasks.judge.weights import Joined
from tasks.judge.wire import Arena, DeadlineError, TensorSpec, WireError, offsets
from tasks.variants.candidate import Candidate

LATE_S = 0.05
SLOTS_BYTES = 32 << 20  # room for inputs and outputs of the calls that share an exchange
DEVICE_SLOTS_BYTES = 256 << 20

Answer = TypeVar("Answer")


def roomy_layout(study: Study) -> Layout:
    """An arena for one program of the problem, with slots for as many calls as one exchange may hold."""
    layout = study.layout
    input_bytes = layout.input_bytes
    is_on_host = isinstance(study.worker.arena, Arena)
    affordable = (SLOTS_BYTES if is_on_host else DEVICE_SLOTS_BYTES) // max(input_bytes + layout.capacity, 1)
    return Layout.fitting(
        state_bytes=layout.inputs_at[0] - layout.state_at,
        input_bytes=input_bytes,
        output_bytes=layout.capacity,
        num_slots=max(MIN_SLOTS, min(MAX_CALLS, affordable)),
    )


class Pair:
    """A candidate and its reference, each in a process of its own.

    Methods raise Failure, DeadlineError or WireError when the candidate fails, and WorkerError when the reference does,
    which a study has seen running.
    """

    def __init__(self, study: Study, spawn: Callable[[], WorkerProcess], *, seed: int, timeout_s: float) -> None:
        """Start the candidate's worker, not yet the reference's.

        Args:
            spawn: starts a worker whose arena has the roomy layout.
            seed: makes the weights of both.
            timeout_s: how long the candidate may take for everything.
        """
        self._study = study
        self._spawn = spawn
        self._seed = seed
        self._layout = roomy_layout(study)
        self.candidate = Program(spawn(), self._layout)
        self._reference: Program | None = None
        self._names: list[str | None] = []
        self._joined: list[Joined] = []
        self._shapes: dict[str, Sequence[int]] = {}
        self.unheld: list[int] = []
        """Weights of the reference for which the candidate has no room, or none where they could be changed."""
        self.num_calls = 0
        """That the candidate was asked for."""
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s

    @property
    def input_bytes(self) -> int:
        """Of one call."""
        return self._layout.input_bytes

    @property
    def output_bytes(self) -> int:
        """Of one call."""
        return self._layout.capacity

    @property
    def state_bytes(self) -> int:
        """Of the reference's weights."""
        return self._layout.inputs_at[0] - self._layout.state_at

    def allow_time(self) -> None:
        """Start the candidate's limit on time anew."""
        self._deadline = time.monotonic() + self._timeout_s

    @contextlib.contextmanager
    def uncounted(self) -> Iterator[None]:
        """For our own work: however long it takes, the candidate's time stands still meanwhile."""
        started_at = time.monotonic()
        try:
            yield
        finally:
            self._deadline += time.monotonic() - started_at

    def load(self, candidate: Candidate) -> bool:
        """Load and build the candidate; returns whether the reference's weights fit it."""
        source, study = candidate.source, self._study
        self.candidate.load(
            source,
            filename="candidate.py",
            class_name=CLASS_NAME,
            precision=study.problem.precision,
            deadline=self._deadline,
        )
        rows, other_items = self.candidate.build(self._seed, study.init_inputs, self._deadline)
        self.candidate.expect_inputs(study.inputs, self._deadline, outputs=study.short_outputs)
        return self._find_places(rows, other_items)

    def _find_places(self, rows: Sequence[StateRow], other_items: int) -> bool:
        """Under which names the candidate keeps the reference's weights, and whether it does so with all of them."""
        weights = self._study.weights
        state = weights.states[self._seed]
        if self.candidate.load_state(state, weights.rows, self._deadline):
            self._names = [name for name, *_ in weights.rows]
            return True
        num_bytes = offsets([spec for _, spec, _ in rows])[1]
        if num_bytes > self.state_bytes:
            return False
        found = self.candidate.save_state(num_bytes, self._deadline)
        self._names = weights.names_in(rows, found, self._seed)
        self._joined = weights.joined_in(rows, found, self._seed, self._names)
        self._shapes = {name: spec.shape for name, spec, _ in rows}
        known = {*self._names, *(each.name for each in self._joined)}
        spare_items = other_items + sum(spec.num_items for name, spec, _ in rows if name not in known)
        joined = {index for each in self._joined for index in each.indices}
        unheld = [
            index
            for index, name in enumerate(self._names)
            if name is None and index not in joined and weights.is_free[index]
            if weights.first_alike[index] == index  # what is tied needs no place of its own
        ]
        # What no seed changes cannot be tried through seeds: a tensor kept beside the state may be it, or anything.
        num_wanted = sum(weights.specs[index].num_items for index in unheld)
        self.unheld = [index for index in unheld if num_wanted > spare_items or weights.is_same_under_all_seeds(index)]
        return not unheld

    def rebuild(self, seed: int) -> None:
        """Make both models anew under another seed."""
        init_inputs = self._study.init_inputs
        self.candidate.build(seed, init_inputs, self._deadline)
        self._ask_reference(lambda reference, deadline: reference.build(seed, init_inputs, deadline))

    def groups_alike(self) -> list[list[int]]:
        """Groups of the reference's weights that may be the candidate's in any order, as far as values tell."""
        return self._study.weights.groups_alike(self._names)

    def reorder(self, group: Sequence[int], order: Sequence[int]) -> None:
        """Say which of the candidate's tensors that a group's weights were taken for each of them is."""
        names = [self._names[group[place]] for place in order]
        for index, name in zip(group, names, strict=True):
            self._names[index] = name

    def load_state(self, state: np.ndarray) -> None:
        """Overwrite the weights of both in place."""
        rows = self._study.weights.rows
        under_names = self._study.weights.under_names(state, self._names, self._shapes, self._joined)
        self.candidate.load_state(*under_names, self._deadline)
        self._ask_reference(lambda reference, deadline: reference.load_state(state, rows, deadline))

    def answer(
        self, block: np.ndarray, *, slot: int = 0, same: bool = False, hold: bool = False, filling: int = 0
    ) -> tuple[list[TensorSpec], np.ndarray, float]:
        """The candidate's outputs, and the ms they took; for `same` and `filling` see Program.call."""
        self.num_calls += 1
        return self.candidate.call(block, self._deadline, slot=slot, same=same, hold=hold, filling=filling)

    def truth(
        self, block: np.ndarray, *, slot: int = 0, same: bool = False, hold: bool = False, filling: int = 0
    ) -> tuple[np.ndarray, float]:
        """The reference's outputs, and the ms they took; as for the candidate."""
        fields: dict[str, Any] = {"slot": slot, "same": same, "hold": hold, "filling": filling}
        return self._ask_reference(lambda reference, deadline: reference.call(block, deadline, **fields))[1:]

    def answers(self, blocks: Sequence[np.ndarray], *, first_slot: int = 0) -> Answers:
        """What the candidate answers to several calls in one exchange."""
        self.num_calls += len(blocks)
        return self.candidate.calls(blocks, self._deadline, first_slot=first_slot)

    def truths(self, blocks: Sequence[np.ndarray], *, first_slot: int = 0) -> Answers:
        """What the reference answers to them."""
        return self._ask_reference(lambda reference, deadline: reference.calls(blocks, deadline, first_slot=first_slot))

    def answers_on_device(self, blocks: Sequence[np.ndarray], order: Sequence[int], *, cold: bool) -> Answers:
        """What the candidate answers to these inputs in this order, and what it says that its device took."""
        self.num_calls += len(order)
        return self.candidate.calls_on_device(blocks, order, self._deadline, cold=cold)

    def truths_on_device(self, blocks: Sequence[np.ndarray], order: Sequence[int], *, cold: bool) -> Answers:
        """What the reference answers to them, and what its device took."""
        return self._ask_reference(
            lambda reference, deadline: reference.calls_on_device(blocks, order, deadline, cold=cold)
        )

    def have_inputs(self, blocks: Sequence[np.ndarray], *, slots: Sequence[int]) -> np.ndarray:
        """For each of these slots whether the candidate's inputs there still are what it was given: bool, one a slot.

        To be asked within a referee's turn.
        """
        places = [self.candidate.layout.inputs_at[slot] for slot in slots]
        return equality.are_same(self.candidate.worker.arena.read_blocks(places, blocks[0].size), blocks)

    def inputs_by_now(self, *, slot: int) -> tuple[np.ndarray, np.ndarray]:
        """The candidate's and the reference's inputs as they are after the call. Within a referee's turn, as above."""
        assert self._reference is not None, "it has been called"
        at = self._layout.inputs_at[slot]
        ours, theirs = self.candidate.worker.arena, self._reference.worker.arena
        return ours.read_block(at, self.input_bytes), theirs.read_block(at, self.input_bytes)

    def referees_turn(self) -> contextlib.AbstractContextManager[None]:
        """For what is computed here with inputs and outputs."""
        return self.candidate.worker.referees_turn()

    def held_outputs(self, *, slot: int) -> tuple[np.ndarray, np.ndarray]:
        """The candidate's and the reference's held outputs as they are by now."""
        ours = self.candidate.recopy(self._deadline, slot=slot).several([0])[0]
        theirs = self._ask_reference(lambda reference, deadline: reference.recopy(deadline, slot=slot))
        return ours, theirs.several([0])[0]

    def have_kept(self, share: float) -> tuple[bool, bool]:
        """Whether the candidate's and the reference's outputs of the exchange before the last are what they were."""
        assert self._reference is not None, "it has been called"
        return self.candidate.has_kept(share), self._reference.has_kept(share)

    def late_answer(self, *, slot: int) -> np.ndarray:
        """What stands in the place of the candidate's outputs a while after it answered."""
        self.candidate.worker.thaw()
        time.sleep(LATE_S)
        return self.candidate.outputs_by_now(slot=slot)

    def exchange(self, *, calls: int) -> Answers:
        """Ask the reference for nothing but to copy the outputs of the held call so many times."""
        return self._ask_reference(lambda reference, deadline: reference.recopy(deadline, slot=0, times=calls))

    def num_made(self) -> tuple[int, int]:
        """How many graphs, and how many kernels that are mapped nowhere, the candidate's process says it has made."""
        answer = self.candidate.worker.ask("loaded", self._deadline)

        def num_of(*names: str) -> int:
            return sum(count for name in names if isinstance(count := answer.get(name), int))

        return num_of("compiled_frames", "captured_graphs"), num_of("own_kernels")

    def close(self) -> None:
        """End both processes."""
        programs = [each for each in (self.candidate, self._reference) if each is not None]
        for program in programs:  # a driver takes a while to let go of a process, and may do so for both at once
            program.worker.kill()
        for program in programs:
            program.worker.end()

    def _ask_reference(self, question: Callable[[Program, float], Answer]) -> Answer:
        """Put a question to the reference, whose process starts when the candidate has answered for the first time."""
        deadline = time.monotonic() + LIMIT_S
        try:
            with self.uncounted():
                if self._reference is None:
                    self._reference = Program(self._spawn(), self._layout)
                    self._load_reference(self._reference, deadline)
                return question(self._reference, deadline)
        except Failure as failure:  # on inputs or weights that it had not seen before
            raise refusal("the reference fails at times", failure) from None
        except (WireError, DeadlineError) as error:
            raise WorkerError(
                f"the reference of {self._study.problem.problem_id} failed while judging: {error}"
            ) from error

    def _load_reference(self, reference: Program, deadline: float) -> None:
        study = self._study
        problem = study.problem
        reference.load(
            problem.source,
            filename=FILE_NAME,
            class_name=REFERENCE_NAME,
            precision=problem.precision,
            deadline=deadline,
        )
        reference.build(self._seed, study.init_inputs, deadline)
        reference.expect_inputs(study.inputs, deadline, outputs=study.short_outputs)
        reference.load_state(study.weights.states[self._seed], study.weights.rows, deadline)
