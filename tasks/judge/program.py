"""A program in a worker process, the reference's or a candidate's alike, and where its tensors lie in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tasks.judge.processes import WorkerProcess
from tasks.judge.wire import MAX_TENSORS, TensorSpec, WireError, aligned, offsets

TEXT_BYTES = 1 << 20
MIN_SLOTS = 2  # so that one call can be held while another is made


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Where things lie in an arena: the weights, and slots for the inputs and the outputs of as many calls."""

    state_at: int
    inputs_at: tuple[int, ...]
    outputs_at: tuple[int, ...]
    capacity: int
    """Bytes of one output slot."""

    @classmethod
    def fitting(cls, *, state_bytes: int, input_bytes: int, output_bytes: int, num_slots: int = MIN_SLOTS) -> Self:
        state_size, input_size, output_size = (aligned(size) for size in (state_bytes, input_bytes, output_bytes))
        inputs_from = TEXT_BYTES + state_size
        outputs_from = inputs_from + num_slots * input_size
        return cls(
            state_at=TEXT_BYTES,
            inputs_at=tuple(inputs_from + slot * input_size for slot in range(num_slots)),
            outputs_at=tuple(outputs_from + slot * output_size for slot in range(num_slots)),
            capacity=output_size,
        )

    @property
    def num_slots(self) -> int:
        return len(self.inputs_at)

    @property
    def num_bytes(self) -> int:
        return self.outputs_at[-1] + self.capacity


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """What came back from one exchange: for every call the form of its outputs and a copy of their bytes."""

    specs: list[list[TensorSpec]]
    outputs: list[np.ndarray]
    taken_ms: float
    """For all calls together, the exchange included."""


class Program:
    """A worker that has a program loaded: what the referee may ask of the reference and of a candidate alike."""

    def __init__(self, worker: WorkerProcess, layout: Layout) -> None:
        self.worker = worker
        self.layout = layout

    def load(self, source: str, *, filename: str, class_name: str, deadline: float) -> None:
        text = source.encode()
        self.worker.arena.write_text(text)
        self.worker.ask("load", deadline, num_bytes=len(text), filename=filename, class_name=class_name)

    def build(self, seed: int, init_inputs: Any, deadline: float) -> list[tuple[str, TensorSpec, str]]:
        """Make the model; what comes back is the form of its state: name, spec and "parameter" or "buffer"."""
        rows: Any = self.worker.ask("build", deadline, seed=seed, init_inputs=init_inputs).get("state")
        try:
            return [(str(name), TensorSpec.from_json([dtype, shape]), str(kind)) for name, dtype, shape, kind in rows]
        except (TypeError, ValueError):
            raise WireError("the process sent something that is not an answer") from None

    def load_state(self, block: np.ndarray, rows: list[list[Any]], deadline: float) -> None:
        self.worker.arena.write(self.layout.state_at, block)
        self.worker.ask("load_state", deadline, at=self.layout.state_at, state=rows)

    def call(
        self,
        block: np.ndarray,
        deadline: float,
        *,
        slot: int = 0,
        fresh: bool = False,
        hold: bool = False,
        in_float64: bool = False,
    ) -> tuple[list[TensorSpec], np.ndarray, float]:
        """Run the model on new inputs: the form of its outputs, a copy of their bytes, and the ms it took.

        Args:
            slot: which of the two places of inputs and outputs to use.
            fresh: hand over new tensor objects, instead of the same ones with other contents.
            hold: keep the outputs alive for recopy.
            in_float64: run a copy of the model in double precision.
        """
        self.worker.arena.write(self.layout.inputs_at[slot], block)
        operation = "call_in_float64" if in_float64 else "call"
        answers = self._run(operation, deadline, [slot], fresh=fresh, hold=hold)
        return answers.specs[0], answers.outputs[0], answers.taken_ms

    def calls(self, blocks: Sequence[np.ndarray], deadline: float) -> Answers:
        """Run the model once on each of several new inputs, one after the other, in a single exchange.

        For calls so short that an exchange for each would outweigh them. At most layout.num_slots.
        """
        for slot, block in enumerate(blocks):
            self.worker.arena.write(self.layout.inputs_at[slot], block)
        return self._run("call", deadline, range(len(blocks)), fresh=False, hold=False)

    def recopy(self, deadline: float, *, slot: int, times: int = 1) -> Answers:
        """The outputs of the held call in a slot once more: to that slot, or to the first slots where several times."""
        slots = [slot] if times == 1 else range(times)
        return self._run("recopy", deadline, slots, held=self.layout.inputs_at[slot])

    def _run(self, operation: str, deadline: float, slots: Sequence[int], **fields: int) -> Answers:
        places = [(self.layout.inputs_at[slot], self.layout.outputs_at[slot]) for slot in slots]
        answer, taken_ms = self.worker.time_ask(
            operation, deadline, places=places, capacity=self.layout.capacity, **fields
        )
        rows = answer.get("outputs")
        if not isinstance(rows, list) or len(rows) != len(places):
            raise WireError("the process sent something that is not an answer")
        specs = [self._specs(row) for row in rows]
        outputs = [
            self.worker.arena.read(to, offsets(forms)[1]) for (_, to), forms in zip(places, specs, strict=True)
        ]
        return Answers(specs=specs, outputs=outputs, taken_ms=taken_ms)

    def _specs(self, row: object) -> list[TensorSpec]:
        if not isinstance(row, list) or len(row) > MAX_TENSORS:
            raise WireError("the process sent something that is not an answer")
        specs = [TensorSpec.from_json(form) for form in row]
        num_bytes = offsets(specs)[1]
        if num_bytes > self.layout.capacity:
            raise WireError(f"the process claims outputs of {num_bytes} bytes")
        return specs
