"""A program in a worker process, the reference's or a candidate's alike, and where its tensors lie in memory."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tasks.judge.processes import WorkerProcess
from tasks.judge.wire import MAX_TENSORS, TensorSpec, WireError, aligned, offsets

TEXT_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Where things lie in an arena. Two slots for inputs and two for outputs, so that one call can be held."""

    state_at: int
    inputs_at: tuple[int, int]
    outputs_at: tuple[int, int]
    capacity: int
    """Bytes of one output slot."""

    @classmethod
    def fitting(cls, *, state_bytes: int, input_bytes: int, output_bytes: int) -> Self:
        sizes = [aligned(size) for size in (state_bytes, input_bytes, input_bytes, output_bytes, output_bytes)]
        starts = [TEXT_BYTES + sum(sizes[:index]) for index in range(5)]
        return cls(
            state_at=starts[0],
            inputs_at=(starts[1], starts[2]),
            outputs_at=(starts[3], starts[4]),
            capacity=sizes[4],
        )

    @property
    def num_bytes(self) -> int:
        return self.outputs_at[1] + self.capacity


class Program:
    """A worker that has a program loaded: what the referee may ask of the reference and of a candidate alike."""

    def __init__(self, worker: WorkerProcess, layout: Layout) -> None:
        self.worker = worker
        self.layout = layout

    def load(self, source: str, *, filename: str, class_name: str, deadline: float) -> None:
        text = np.frombuffer(source.encode(), dtype=np.uint8)
        self.worker.arena.write(0, text)
        self.worker.ask("load", deadline, num_bytes=text.size, filename=filename, class_name=class_name)

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
        return self._run(operation, deadline, slot, fresh=fresh, hold=hold)

    def recopy(self, deadline: float, *, slot: int) -> tuple[list[TensorSpec], np.ndarray, float]:
        """The outputs of the held call in a slot once more."""
        return self._run("recopy", deadline, slot)

    def _run(
        self, operation: str, deadline: float, slot: int, **flags: bool
    ) -> tuple[list[TensorSpec], np.ndarray, float]:
        at, to = self.layout.inputs_at[slot], self.layout.outputs_at[slot]
        answer, taken_ms = self.worker.time_ask(
            operation, deadline, at=at, to=to, capacity=self.layout.capacity, **flags
        )
        rows = answer.get("outputs")
        if not isinstance(rows, list) or len(rows) > MAX_TENSORS:
            raise WireError("the process sent something that is not an answer")
        specs = [TensorSpec.from_json(row) for row in rows]
        num_bytes = offsets(specs)[1]
        if num_bytes > self.layout.capacity:
            raise WireError(f"the process claims outputs of {num_bytes} bytes")
        return specs, self.worker.arena.read(to, num_bytes), taken_ms
