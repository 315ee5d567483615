"""A program in a worker process, the reference's or a candidate's alike, and where its tensors lie in memory."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from tasks.judge import remote_memory
from tasks.judge.blocks import Blocks
from tasks.judge.call_frames import MAX_ADDRESS, CallQuestion, keeps_outputs
from tasks.judge.processes import Failure, Framed, WorkerProcess, in_json
from tasks.judge.wire import MAX_TENSORS, TensorSpec, WireError, aligned, offsets

TEXT_BYTES = 1 << 20
GUARD_BYTES = 4_096  # before and behind all inputs of a call: who reads past their ends finds no zeros there
MIN_SLOTS = 2  # so that one call can be held while another is made


StateRow = tuple[str, TensorSpec, str]
"""Name, form and kind of a tensor of a model's state."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """What a call is given: plain data as JSON, and the form of the tensors within it."""

    tree: Any
    specs: tuple[TensorSpec, ...]
    with_grad: tuple[bool, ...]
    """Per tensor, whether it asks for a gradient."""
    block: np.ndarray = field(compare=False)
    """The bytes of the tensors, one after the other."""
    needs_grad_mode: bool = False
    """Whether the program computes gradients without switching them on itself."""

    @classmethod
    def from_json(cls, row: dict[str, Any], block: np.ndarray) -> Self:
        specs = tuple(TensorSpec.from_json(spec) for spec in row["specs"])
        return cls(tree=row["tree"], specs=specs, with_grad=tuple(row["with_grad"]), block=block)

    def to_json(self) -> dict[str, Any]:
        specs = [spec.to_json() for spec in self.specs]
        return {"tree": self.tree, "specs": specs, "with_grad": list(self.with_grad)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Where things lie in an arena: the weights, and slots for the inputs and the outputs of as many calls."""

    state_at: int
    inputs_at: tuple[int, ...]
    outputs_at: tuple[int, ...]
    input_bytes: int
    """Of one slot, without the guards."""
    capacity: int
    """Bytes of one output slot."""

    @classmethod
    def fitting(cls, *, state_bytes: int, input_bytes: int, output_bytes: int, num_slots: int = MIN_SLOTS) -> Self:
        state_size, input_size, output_size = (aligned(size) for size in (state_bytes, input_bytes, output_bytes))
        inputs_from = TEXT_BYTES + state_size + GUARD_BYTES
        step = input_size + 2 * GUARD_BYTES
        outputs_from = inputs_from + num_slots * step
        return cls(
            state_at=TEXT_BYTES,
            inputs_at=tuple(inputs_from + slot * step for slot in range(num_slots)),
            outputs_at=tuple(outputs_from + slot * output_size for slot in range(num_slots)),
            input_bytes=input_size,
            capacity=output_size,
        )

    @property
    def num_slots(self) -> int:
        return len(self.inputs_at)

    @property
    def num_bytes(self) -> int:
        return self.outputs_at[-1] + self.capacity


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputPlace:
    """Where the outputs of one call are."""

    specs: list[TensorSpec]
    addresses: list[int]
    """In the worker's memory, where that can be read."""
    at: int
    """In the arena, where not."""


class LazyBytes:
    """Outputs that are read when somebody looks: they stay as they are until the worker is asked again."""

    def __init__(self, places: Sequence[OutputPlace], read_several: Callable[[Sequence[OutputPlace]], Blocks]) -> None:
        self._places = places
        self._read_several = read_several

    def several(self, indices: Sequence[int]) -> Blocks:
        """Those, which have one form; to be asked within a turn of the device."""
        return self._read_several([self._places[index] for index in indices])


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """What came back from one exchange: for every call the form of its outputs and a copy of their bytes."""

    specs: list[list[TensorSpec]]
    outputs: list[np.ndarray] | LazyBytes
    taken_ms: float
    """For all calls together, the exchange included: by the stamp that the kernel put on the answer."""
    outer_ms: float
    """The same with what the worker may have run a little before, and ran after: see Taken."""
    device_ms: float = 0.0
    """Between two events on the device around the calls, as the worker says; 0 without a device."""
    first_slot: int = 0
    """Of those that the calls were made in."""

    def several(self, indices: Sequence[int]) -> Blocks:
        """The outputs of several calls that have one form; within a referee's turn where they are still to be read."""
        if isinstance(self.outputs, LazyBytes):
            return self.outputs.several(indices)
        return [self.outputs[index] for index in indices]


class Program:
    """A worker that has a program loaded: what the referee may ask of the reference and of a candidate alike."""

    def __init__(self, worker: WorkerProcess, layout: Layout) -> None:
        self.worker = worker
        self.layout = layout
        self.is_plain = False
        """Whether its calls could be answered shortly, as it said when it last answered one in full."""
        self._usual_outputs: list[TensorSpec] = []
        self._last_places: dict[int, OutputPlace] = {}
        self._exchanges: list[tuple[list[OutputPlace], list[np.ndarray]]] = [([], []), ([], [])]  # the last one first
        not_numbers = np.full(2 * GUARD_BYTES, 0xFF, dtype=np.uint8)
        for at in layout.inputs_at:
            worker.arena.write(at - GUARD_BYTES, not_numbers)
            worker.arena.write(at + layout.input_bytes - GUARD_BYTES, not_numbers)

    def load(self, source: str, *, filename: str, class_name: str, precision: str, deadline: float) -> None:
        text = source.encode()
        self.worker.arena.write_text(text)
        fields = {"filename": filename, "class_name": class_name, "precision": precision}
        self.worker.ask("load", deadline, num_bytes=len(text), **fields)

    def expect_inputs(self, inputs: Arguments, deadline: float, *, outputs: Sequence[TensorSpec] = ()) -> None:
        """Tell the form of the inputs that later calls bring.

        Args:
            outputs: their form, where calls may be answered shortly: by the addresses of outputs that have it. Both
                programs of a pair are to be told the same, since what answering takes is taken off both.
        """
        self._usual_outputs = list(outputs)
        self.worker.ask(
            "inputs",
            deadline,
            inputs=inputs.to_json(),
            needs_grad_mode=inputs.needs_grad_mode,
            slots=list(zip(self.layout.inputs_at, self.layout.outputs_at, strict=True)),
            capacity=self.layout.capacity,
            copies=not self.worker.is_readable,
            outputs=[[spec.dtype, list(spec.shape)] for spec in outputs],
        )

    def build(self, seed: int, init_inputs: Arguments, deadline: float) -> tuple[list[StateRow], int]:
        """Make the model; what comes back is the form of its state, and the elements of tensors kept beside it."""
        at = self.layout.state_at
        self.worker.arena.write(at, init_inputs.block)
        answer = self.worker.ask("build", deadline, seed=seed, arguments=init_inputs.to_json(), at=at)
        rows: Any = answer.get("state")
        try:
            state = [(str(name), TensorSpec.from_json([dtype, shape]), str(kind)) for name, dtype, shape, kind in rows]
            return state, int(answer.get("other_items", 0))
        except (TypeError, ValueError, OverflowError):
            raise WireError("the process sent something that is not an answer") from None

    def load_state(self, block: np.ndarray, rows: list[list[Any]], deadline: float) -> bool:
        """Overwrite the weights in place; whether the model has a place for all of them, as it says itself."""
        self.worker.arena.write(self.layout.state_at, block)
        return self.worker.ask("load_state", deadline, at=self.layout.state_at, state=rows).get("loaded") is True

    def first_alike(self, deadline: float) -> list[int]:
        """For each tensor of the state the first that is the same one; only to be asked of the reference."""
        found: list[int] = self.worker.ask("first_alike", deadline)["first_alike"]
        return found

    def save_state(self, num_bytes: int, deadline: float) -> np.ndarray:
        """The bytes of all weights, in the order in which build told them."""
        self.worker.ask("save_state", deadline, at=self.layout.state_at)
        return self.worker.arena.read(self.layout.state_at, num_bytes)

    def call(
        self,
        block: np.ndarray,
        deadline: float,
        *,
        slot: int = 0,
        same: bool = False,
        hold: bool = False,
        filling: int = 0,
    ) -> tuple[list[TensorSpec], np.ndarray, float]:
        """Run the model on new inputs: the form of its outputs, a copy of their bytes, and the ms it took.

        Args:
            slot: which of the two places of inputs and outputs to use.
            same: hand over the tensor objects of the slot's last call with other contents, instead of new ones.
            hold: keep the outputs alive for recopy.
            filling: byte of what unwritten memory of the host is full of; 0 leaves it as it is.
        """
        question = CallQuestion(slot=slot, same=same, hold=hold, filling=filling)
        answers = self._run("call", deadline, [slot], [block], question.framed)
        return answers.specs[0], answers.several([0])[0], answers.taken_ms

    def call_in_float64(
        self, block: np.ndarray, deadline: float, *, nudge: float = 0.0, seed: int = 0, rounded: bool = False
    ) -> tuple[list[TensorSpec], np.ndarray]:
        """Run a copy of the model in double precision, on values nudged a little or rounded to 11 bits if asked."""
        framed = in_json("call_in_float64", nudge=nudge, seed=seed, rounded=rounded)
        answers = self._run("call_in_float64", deadline, [0], [block], framed)
        return answers.specs[0], answers.several([0])[0]

    def calls(self, blocks: Sequence[np.ndarray], deadline: float, *, first_slot: int = 0) -> Answers:
        """Run the model once on each of several new inputs, one after the other, in a single exchange.

        For calls so short that an exchange for each would outweigh them. At most layout.num_slots.
        """
        question = CallQuestion(slot=first_slot, count=len(blocks))
        return self._run("call", deadline, range(first_slot, first_slot + len(blocks)), blocks, question.framed)

    def calls_on_device(
        self, blocks: Sequence[np.ndarray], order: Sequence[int], deadline: float, *, cold: bool
    ) -> Answers:
        """Run the model on these inputs in the order given, some of them several times, between two events.

        Args:
            order: indices of blocks; every one occurs.
            cold: let the device wait for a while first, so that the host has launched everything before it begins.
        """
        framed = in_json("call_between_events", order=list(order), count=len(blocks), cold=cold)
        return self._run("call_between_events", deadline, range(len(blocks)), blocks, framed, reads_later=True)

    def recopy(self, deadline: float, *, slot: int, times: int = 1) -> Answers:
        """The outputs of the held call in a slot once more: for that slot and for those behind it."""
        question = CallQuestion(slot=slot, count=times, again=True)
        return self._run("recopy", deadline, range(slot, slot + times), [], question.framed)

    def _run(
        self,
        operation: str,
        deadline: float,
        slots: Sequence[int],
        blocks: Sequence[np.ndarray],
        framed: Framed,
        *,
        reads_later: bool = False,
    ) -> Answers:
        """Ask for calls on these inputs, a block for each slot, or for none."""
        inputs_at = [self.layout.inputs_at[slot] for slot in slots]
        answer, taken = self.worker.time_ask(
            operation,
            deadline,
            framed,
            lay_in=lambda: self.worker.arena.write_blocks(inputs_at[: len(blocks)], blocks),
        )
        self.is_plain = answer.get("is_plain", self.is_plain) is True
        handed_over = self._handed_over(answer, [self.layout.outputs_at[slot] for slot in slots])
        self._last_places |= dict(zip(slots, handed_over, strict=True))
        outputs = LazyBytes(handed_over, self._several_at) if reads_later else [*map(self._bytes_at, handed_over)]
        is_kept = self.worker.is_readable and keeps_outputs(self.layout.capacity)
        self._exchanges = [(handed_over, outputs if is_kept and isinstance(outputs, list) else []), self._exchanges[0]]
        return Answers(
            specs=[place.specs for place in handed_over],
            outputs=outputs,
            taken_ms=taken.inner_ms,
            outer_ms=taken.outer_ms,
            device_ms=_claimed_ms(answer),
            first_slot=slots[0],
        )

    def outputs_by_now(self, *, slot: int) -> np.ndarray:
        """What stands by now where the outputs of the last call of a slot were."""
        return self._bytes_at(self._last_places[slot])

    def has_kept(self, share: float) -> bool:
        """Whether the outputs of a call in the exchange before the last still are what they were, if that can be known.

        Args:
            share: from 0 to below 1, which of its calls.
        """
        places, outputs = self._exchanges[1]
        if not outputs:
            return True
        index = int(share * len(outputs))
        return np.array_equal(self._bytes_at(places[index]), outputs[index])

    def _bytes_at(self, place: OutputPlace) -> np.ndarray:
        starts, num_bytes = offsets(place.specs)
        if not self.worker.is_readable:
            with self.worker.referees_turn():
                return self.worker.arena.read_block(place.at, num_bytes)
        pieces = [(address, spec.num_bytes) for address, spec in zip(place.addresses, place.specs, strict=True)]
        return remote_memory.read(self.worker.pid, pieces, starts, num_bytes)

    def _several_at(self, places: Sequence[OutputPlace]) -> Blocks:
        """Outputs of one form, from a device's arena; the caller has the turn."""
        return self.worker.arena.read_blocks([place.at for place in places], offsets(places[0].specs)[1])

    def _handed_over(self, answer: dict[str, Any], places: Sequence[int]) -> list[OutputPlace]:
        """What a worker says about the outputs of its calls; only that it makes sense is sure."""
        addresses, rows = answer.get("addresses"), answer.get("outputs")
        specs = self._usual_outputs
        if isinstance(addresses, tuple) and specs and len(addresses) == len(places) * len(specs):
            starts = range(0, len(addresses), len(specs))
            each = [list(addresses[start : start + len(specs)]) for start in starts]
            return [OutputPlace(specs=specs, addresses=own, at=at) for own, at in zip(each, places, strict=True)]
        if not isinstance(rows, list) or len(rows) != len(places):
            raise WireError("the process sent something that is not an answer")
        return [self._described(row, at) for row, at in zip(rows, places, strict=True)]

    def _described(self, row: object, at: int) -> OutputPlace:
        """The outputs of one call whose forms the worker tells."""
        if not isinstance(row, list) or len(row) > MAX_TENSORS:
            raise WireError("the process sent something that is not an answer")
        specs, addresses = [], []
        for form in row:
            if not (isinstance(form, list) and len(form) == 4 and isinstance(form[2], str)):
                raise WireError("the process sent something that is not an answer")
            if type(form[3]) is not int or not 0 <= form[3] < MAX_ADDRESS:
                raise WireError("the process sent something that is not an address")
            specs.append(TensorSpec.from_json(form[:3]))
            addresses.append(form[3])
        num_bytes = offsets(specs)[1]
        if num_bytes > self.layout.capacity:
            raise Failure("size", f"the outputs take {num_bytes} bytes, there is room for {self.layout.capacity}")
        return OutputPlace(specs=specs, addresses=addresses, at=at)


def _claimed_ms(answer: dict[str, Any]) -> float:
    """What a worker says that its device took; only that it is a time is sure."""
    claimed = answer.get("device_ms", 0.0)
    if not isinstance(claimed, int | float) or not 0.0 <= claimed < sys.float_info.max:
        raise WireError("the process sent something that is not a time")
    return float(claimed)
