"""A problem's reference in a process of its own, and what is known about the problem from running it.

Trusted, but behind the same walls as a candidate, so that both run under the same conditions. It lives on from one
candidate of a problem to the next; what is kept of it are forms, tolerances and unused inputs, never times.
"""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.errors import WorkerError
from tasks.judge import equality
from tasks.judge.distributions import DISTRIBUTIONS, Domain, domain, items, perturbed, transformed
from tasks.judge.processes import Failure, WorkerProcess
from tasks.judge.wire import DeadlineError, TensorSpec, WireError, aligned, offsets
from tasks.problems.problem import Problem

TEXT_BYTES = 1 << 20
REGION_BYTES = 1 << 30
ARENA_BYTES = TEXT_BYTES + 5 * REGION_BYTES
POOL_BYTES = 96 << 20
NUM_SEEDS = 3
LIMIT_S = 60.0
EXCHANGES = 9
# Outputs for different inputs must differ by more than this multiple of the allowed error: else anything would pass.
LEAST_CHANGE = 4.0


class BadProblemError(Exception):
    """The reference fails, is not deterministic, or its output does not depend on what it should."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Where things lie in an arena. Two slots for inputs and two for outputs, so that one call can be held."""

    state_at: int
    inputs_at: tuple[int, int]
    outputs_at: tuple[int, int]
    capacity: int
    """Bytes of one output slot."""

    @classmethod
    def of(cls, *, state_bytes: int, input_bytes: int, output_bytes: int) -> "Layout":
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
        rows = self.worker.ask("build", deadline, seed=seed, init_inputs=init_inputs).get("state")
        try:
            return [(str(name), TensorSpec.from_json([dtype, shape]), str(kind)) for name, dtype, shape, kind in rows]
        except (TypeError, ValueError):
            raise WireError("the process sent something that is not an answer") from None

    def load_state(self, block: np.ndarray, rows: list[list[Any]], deadline: float) -> None:
        self.worker.arena.write(self.layout.state_at, block)
        self.worker.ask("load_state", deadline, at=self.layout.state_at, state=rows)

    def call(
        self, block: np.ndarray, deadline: float, *, slot: int = 0, fresh: bool = False, hold: bool = False
    ) -> tuple[list[TensorSpec], np.ndarray, float]:
        """Run the model on new inputs: the form of its outputs, a copy of their bytes, and the ms it took.

        The worker is stopped until its inputs are in place and again as soon as it has answered: it can neither work
        ahead nor, unseen, go on working.
        """
        at, to = self.layout.inputs_at[slot], self.layout.outputs_at[slot]
        self.worker.arena.write(at, block)
        self.worker.thaw()
        answer, taken_ms = self.worker.time_ask(
            "call", deadline, at=at, to=to, capacity=self.layout.capacity, fresh=fresh, hold=hold
        )
        self.worker.freeze()
        return *self._outputs(answer, to), taken_ms

    def recopy(self, deadline: float, *, slot: int) -> tuple[list[TensorSpec], np.ndarray, float]:
        """The outputs of the held call in a slot once more."""
        at, to = self.layout.inputs_at[slot], self.layout.outputs_at[slot]
        self.worker.thaw()
        answer, taken_ms = self.worker.time_ask("recopy", deadline, at=at, to=to, capacity=self.layout.capacity)
        self.worker.freeze()
        return *self._outputs(answer, to), taken_ms

    def _outputs(self, answer: dict[str, Any], at: int) -> tuple[list[TensorSpec], np.ndarray]:
        rows = answer.get("outputs")
        if not isinstance(rows, list):
            raise WireError("the process sent something that is not an answer")
        specs = [TensorSpec.from_json(row) for row in rows]
        num_bytes = offsets(specs)[1]
        if num_bytes > self.layout.capacity:
            raise WireError(f"the process claims outputs of {num_bytes} bytes")
        return specs, self.worker.arena.read(at, num_bytes)


class Reference(Program):
    """The reference's program and the facts about its problem."""

    def __init__(self, worker: WorkerProcess, problem: Problem) -> None:
        layout = Layout.of(state_bytes=REGION_BYTES, input_bytes=REGION_BYTES, output_bytes=REGION_BYTES)
        super().__init__(worker, layout)
        self.problem = problem
        self.input_rows: list[dict[str, Any]] = []
        self.input_specs: list[TensorSpec] = []
        self.state_rows: list[list[Any]] = []
        self.output_specs: list[TensorSpec] = []
        self.distributions: list[str] = []
        self.seeds: list[int] = []
        self.init_inputs: Any = None
        self._secret = random.SystemRandom()
        self._pool: list[np.ndarray] = []
        self._domains: list[Domain] = []
        self._states: dict[int, np.ndarray] = {}
        self._state_specs: list[TensorSpec] = []
        self._is_free: list[bool] = []
        self._own_errors: dict[str, list[float]] = {}

    def study(self) -> None:
        """Learn the problem's forms, tolerances and valid distributions.

        Raises:
            BadProblemError: if the reference cannot serve as the truth.
        """
        try:
            deadline = self.deadline
            self.load(self.problem.source, filename="reference.py", class_name="Model", deadline=deadline)
            self.init_inputs = self.worker.ask("init_inputs", deadline)["value"]
            self._pool = [self._draw() for _ in range(3)]
            self.worker.ask("inputs", deadline, inputs=self.input_rows)
            self._study_state()
            self._study_outputs()
        except Failure as failure:
            raise BadProblemError(f"the reference fails:\n{failure.text}") from None
        except DeadlineError:
            raise BadProblemError(f"the reference takes longer than {LIMIT_S:.0f} s") from None
        except WireError as error:
            raise BadProblemError(f"the reference does not run: {error}\n{self.worker.log}") from None

    @property
    def deadline(self) -> float:
        return time.monotonic() + LIMIT_S

    @property
    def input_bytes(self) -> int:
        return offsets(self.input_specs)[1]

    @property
    def state_bytes(self) -> int:
        return offsets(self._state_specs)[1]

    def fresh_inputs(self, rng: random.Random) -> Iterator[np.ndarray]:
        """Inputs in a random order, none twice. Those drawn for one candidate are kept for the next: no candidate can
        know them, because none sees another's process."""
        yield from rng.sample(self._pool, len(self._pool))
        while True:
            block = self._draw()
            if (len(self._pool) + 1) * block.size <= POOL_BYTES:
                self._pool.append(block)
            yield block

    def transformed(self, block: np.ndarray, name: str, rng: np.random.Generator) -> np.ndarray:
        return transformed(block, self.input_specs, self._domains, name, rng)

    def use_seed(self, seed: int) -> None:
        """Take up the model made under one of the seeds, with the weights it was made with."""
        self.build(seed, self.init_inputs, self.deadline)
        self.load_state(self._states[seed], self.state_rows, self.deadline)

    def perturbed_state(self, seed: int, rng: np.random.Generator) -> np.ndarray:
        return perturbed(self._states[seed], self._state_specs, self._is_free, rng)

    def truth(self, block: np.ndarray) -> tuple[np.ndarray, float]:
        """The reference's outputs and the ms they took.

        Raises:
            WorkerError: if the reference fails although it ran before.
        """
        try:
            specs, outputs, taken_ms = self.call(block, self.deadline)
        except (Failure, WireError, DeadlineError) as error:
            raise WorkerError(f"the reference of {self.problem.problem_id} failed while judging: {error}") from error
        if specs != self.output_specs:
            raise WorkerError(f"the reference of {self.problem.problem_id} changed the form of its outputs")
        return outputs, taken_ms

    def compare(self, outputs: np.ndarray, truth: np.ndarray, distribution: str) -> equality.Comparison:
        own = self._own_errors.get(distribution) or self._own_errors["plain"]
        return equality.compare(outputs, truth, self.output_specs, own)

    def exchange_samples_ms(self) -> list[float]:
        """What it takes to ask for nothing and to copy the outputs of the last held call."""
        return [self.recopy(self.deadline, slot=1)[2] for _ in range(EXCHANGES)]

    def _draw(self) -> np.ndarray:
        at = self.layout.inputs_at[0]
        self.worker.thaw()
        answer = self.worker.ask(
            "draw", self.deadline, seed=self._secret.getrandbits(60), at=at, capacity=REGION_BYTES
        )
        rows = answer["inputs"]
        specs = [TensorSpec.from_json(row["tensor"]) for row in rows if "tensor" in row]
        if not self.input_rows:
            self.input_rows, self.input_specs = rows, specs
        elif specs != self.input_specs:
            raise BadProblemError("get_inputs returns other shapes at every call")
        return self.worker.arena.read(at, self.input_bytes)

    def _study_state(self) -> None:
        self.seeds = [self._secret.getrandbits(31) for _ in range(NUM_SEEDS)]
        for seed in self.seeds:
            state = self.build(seed, self.init_inputs, self.deadline)
            self.worker.ask("save_state", self.deadline, at=self.layout.state_at)
            self._state_specs = [spec for _, spec, _ in state]
            self.state_rows = [[name, spec.dtype, list(spec.shape)] for name, spec, _ in state]
            self._states[seed] = self.worker.arena.read(self.layout.state_at, self.state_bytes)
        first, second = self._states[self.seeds[0]], self._states[self.seeds[1]]
        self._is_free = [
            kind == "parameter" or not np.array_equal(first[at : at + spec.num_bytes], second[at : at + spec.num_bytes])
            for (_, spec, kind), at in zip(state, offsets(self._state_specs)[0], strict=True)
        ]

    def _study_outputs(self) -> None:
        self.use_seed(self.seeds[0])
        first, second, third = self._pool
        self.output_specs, outputs, _ = self.call(first, self.deadline, slot=1, hold=True)
        if not self.output_specs or not equality.is_finite(outputs, self.output_specs):
            raise BadProblemError("the reference returns nothing, or values that are not finite")
        self._own_errors["plain"] = self._study_precision(first, outputs)
        if not self.compare(self.truth(first)[0], outputs, "plain").is_equal:
            raise BadProblemError("the reference gives different outputs for equal inputs")
        if self.input_specs and self._barely_differ(outputs, self.truth(second)[0]):
            raise BadProblemError("the reference's output does not depend on its inputs")
        rng = np.random.default_rng(self._secret.getrandbits(60))
        self._study_distributions(third, rng)
        if any(self._is_free):
            self.load_state(self.perturbed_state(self.seeds[0], rng), self.state_rows, self.deadline)
            if self._barely_differ(outputs, self.truth(first)[0]):
                raise BadProblemError("the reference's output does not depend on its weights")

    def _barely_differ(self, one: np.ndarray, other: np.ndarray) -> bool:
        return self.compare(one, other, "plain").max_error <= LEAST_CHANGE

    def _study_distributions(self, block: np.ndarray, rng: np.random.Generator) -> None:
        self._domains = [
            domain(spec, [items(draw, spec, at) for draw in self._pool] if spec.dtype.startswith("float") else [])
            for spec, at in zip(self.input_specs, offsets(self.input_specs)[0], strict=True)
        ]
        for name in DISTRIBUTIONS:
            moved = self.transformed(block, name, rng)
            if np.array_equal(moved, block):
                continue
            try:
                specs, outputs, _ = self.call(moved, self.deadline)
            except Failure:
                continue  # outside the problem's domain
            if specs == self.output_specs and equality.is_finite(outputs, specs):
                self._own_errors[name] = self._study_precision(moved, outputs)
                self.distributions.append(name)

    def _study_precision(self, block: np.ndarray, outputs: np.ndarray) -> list[float]:
        """The reference's own error, from a run in double precision where the model can do that."""
        at, to = self.layout.inputs_at[0], self.layout.outputs_at[0]
        self.worker.arena.write(at, block)
        self.worker.thaw()
        try:
            answer = self.worker.ask("call_in_float64", self.deadline, at=at, to=to, capacity=self.layout.capacity)
        except Failure:
            return [equality.unknown_own_error(spec) for spec in self.output_specs]
        specs, double = self._outputs(answer, to)
        wide = ["float64" if spec.dtype.startswith(("float", "bfloat")) else spec.dtype for spec in self.output_specs]
        if [spec.dtype for spec in specs] != wide or [s.shape for s in specs] != [s.shape for s in self.output_specs]:
            return [equality.unknown_own_error(spec) for spec in self.output_specs]
        return equality.own_errors(outputs, double, self.output_specs)
