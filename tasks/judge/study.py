"""What is known about a problem from running its reference: forms, tolerances, valid inputs and weights.

Trusted, but behind the same walls as a candidate. A study outlives the candidates of its problem and is never timed:
every candidate is measured against a fresh process of the reference.
"""

import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from tasks.errors import WorkerError
from tasks.judge import equality
from tasks.judge.distributions import DISTRIBUTIONS, Domain, domain, items, perturbed, transformed
from tasks.judge.processes import Failure, WorkerProcess
from tasks.judge.program import TEXT_BYTES, Layout, Program
from tasks.judge.wire import DeadlineError, TensorSpec, WireError, offsets
from tasks.problems.problem import Problem

CLASS_NAME = "Model"
FILE_NAME = "reference.py"
REGION_BYTES = 1 << 30
ARENA_BYTES = TEXT_BYTES + 5 * REGION_BYTES
POOL_BYTES = 32 << 20
NUM_SEEDS = 3
LIMIT_S = 60.0
# Outputs for different inputs must differ by more than this multiple of the allowed error: else anything would pass.
LEAST_CHANGE = 4.0


# Where rounding alone changes this share of the output, a comparison tells nothing. Moved inputs are our choice, and
# must leave much less room.
MAX_OWN_ERROR, MAX_OWN_ERROR_MOVED = 1e-2, 1e-4


class BadProblemError(Exception):
    """The reference fails, is not deterministic, or its output does not depend on what it should."""


class Study:
    """The facts about one problem, and the process that draws its inputs.

    Raises:
        BadProblemError: if the reference cannot serve as the truth.
    """

    def __init__(self, problem: Problem, worker: WorkerProcess) -> None:
        self.problem = problem
        self.worker = worker
        self.init_inputs: Any = None
        self.input_rows: list[dict[str, Any]] = []
        self.input_specs: list[TensorSpec] = []
        self.state_rows: list[list[Any]] = []
        self.output_specs: list[TensorSpec] = []
        self.seeds: list[int] = []
        self.distributions: list[str] = []
        self._layout = Layout.fitting(state_bytes=REGION_BYTES, input_bytes=REGION_BYTES, output_bytes=REGION_BYTES)
        self._program = Program(worker, self._layout)
        self._secret = random.SystemRandom()
        self._lock = threading.Lock()
        self._pool: list[np.ndarray] = []
        self._domains: list[Domain] = []
        self._states: dict[int, np.ndarray] = {}
        self._state_specs: list[TensorSpec] = []
        self._is_free: list[bool] = []
        self._own_errors: dict[str, list[float]] = {}
        try:
            self._run()
        except Failure as failure:
            raise BadProblemError(f"the reference fails:\n{failure.text}") from None
        except DeadlineError:
            raise BadProblemError(f"the reference takes longer than {LIMIT_S:.0f} s") from None
        except WireError as error:
            raise BadProblemError(f"the reference does not run: {error}\n{worker.log}") from None

    @property
    def layout(self) -> Layout:
        """An arena that holds exactly what one program of this problem needs."""
        return Layout.fitting(
            state_bytes=offsets(self._state_specs)[1],
            input_bytes=offsets(self.input_specs)[1],
            output_bytes=offsets(self.output_specs)[1],
        )

    def fresh_inputs(self, rng: random.Random) -> Iterator[np.ndarray]:
        """Inputs in a random order, none twice.

        Those drawn for one candidate are kept for the next: no candidate can know them, since none sees what another
        saw.

        Raises:
            WorkerError: if the process that draws them has gone.
        """
        yield from rng.sample(self._pool, len(self._pool))
        while True:
            with self._lock:
                try:
                    block = self._draw()
                except (Failure, DeadlineError, WireError) as error:
                    raise WorkerError(f"{self.problem.problem_id} no longer gives inputs: {error}") from error
                if (len(self._pool) + 1) * block.size <= POOL_BYTES:
                    self._pool.append(block)
            yield block

    def transformed(self, block: np.ndarray, distribution: str, rng: np.random.Generator) -> np.ndarray:
        return transformed(block, self.input_specs, self._domains, distribution, rng)

    def perturbed_state(self, seed: int, rng: np.random.Generator) -> np.ndarray:
        return perturbed(self._states[seed], self._state_specs, self._is_free, rng)

    def compare(self, outputs: np.ndarray, truth: np.ndarray, distribution: str) -> equality.Comparison:
        return equality.compare(outputs, truth, self.output_specs, self._own_errors[distribution])

    def _run(self) -> None:
        text = self.problem.source
        self._program.load(text, filename=FILE_NAME, class_name=CLASS_NAME, deadline=self._deadline)
        self.init_inputs = self.worker.ask("init_inputs", self._deadline)["value"]
        self._pool = [self._draw() for _ in range(3)]
        self.worker.ask("inputs", self._deadline, inputs=self.input_rows)
        self._study_state()
        self._program.build(self.seeds[0], self.init_inputs, self._deadline)
        self._study_outputs()
        self._study_distributions()
        self._study_weights()

    @property
    def _deadline(self) -> float:
        return time.monotonic() + LIMIT_S

    def _draw(self) -> np.ndarray:
        at, seed = self._layout.inputs_at[0], self._secret.getrandbits(60)
        rows = self.worker.ask("draw", self._deadline, seed=seed, at=at, capacity=REGION_BYTES)["inputs"]
        specs = [TensorSpec.from_json(row["tensor"]) for row in rows if "tensor" in row]
        if not self.input_rows:
            self.input_rows, self.input_specs = rows, specs
        elif specs != self.input_specs:
            raise BadProblemError("get_inputs returns other shapes at every call")
        return self.worker.arena.read(at, offsets(specs)[1])

    def _study_state(self) -> None:
        """The weights under each seed. Buffers that are equal under all of them are constants of the program."""
        self.seeds = [self._secret.getrandbits(31) for _ in range(NUM_SEEDS)]
        kinds: list[str] = []
        for seed in self.seeds:
            state = self._program.build(seed, self.init_inputs, self._deadline)
            kinds = [kind for _, _, kind in state]
            self._state_specs = [spec for _, spec, _ in state]
            self.state_rows = [[name, spec.dtype, list(spec.shape)] for name, spec, _ in state]
            self.worker.ask("save_state", self._deadline, at=self._layout.state_at)
            self._states[seed] = self.worker.arena.read(self._layout.state_at, offsets(self._state_specs)[1])
        one, other = (self._states[seed] for seed in self.seeds[:2])
        self._is_free = [
            kind == "parameter" or not np.array_equal(one[at : at + spec.num_bytes], other[at : at + spec.num_bytes])
            for kind, spec, at in zip(kinds, self._state_specs, offsets(self._state_specs)[0], strict=True)
        ]

    def _study_outputs(self) -> None:
        first, second, _ = self._pool
        self.output_specs, outputs, _ = self._program.call(first, self._deadline)
        if not self.output_specs or equality.has_nan(outputs, self.output_specs):
            raise BadProblemError("the reference returns nothing, or values that are not numbers")
        self._own_errors["plain"] = [equality.unknown_own_error(spec) for spec in self.output_specs]
        if not self.compare(self._outputs(first), outputs, "plain").is_equal:
            raise BadProblemError("the reference gives different outputs for equal inputs")
        self._own_errors["plain"] = self._own_error(first, outputs)
        if max(self._own_errors["plain"]) > MAX_OWN_ERROR:
            raise BadProblemError(
                f"rounding alone changes the reference's output by {max(self._own_errors['plain']):.0%}"
            )
        if self.input_specs and self._barely_differ(outputs, self._outputs(second)):
            raise BadProblemError("the reference's output does not depend on its inputs")

    def _study_distributions(self) -> None:
        """Which other inputs the reference takes, and how well it computes on them."""
        self._domains = [
            domain(spec, [items(draw, spec, at) for draw in self._pool] if spec.dtype.startswith("float") else [])
            for spec, at in zip(self.input_specs, offsets(self.input_specs)[0], strict=True)
        ]
        for name in DISTRIBUTIONS:
            block = self.transformed(self._pool[2], name, self._numpy_rng())
            if np.array_equal(block, self._pool[2]):
                continue
            try:
                specs, outputs, _ = self._program.call(block, self._deadline)
            except Failure:
                continue  # outside the problem's domain
            if specs != self.output_specs or not equality.is_finite(outputs, specs):
                continue
            own_errors = self._own_error(block, outputs)
            if max(own_errors) <= MAX_OWN_ERROR_MOVED:
                self._own_errors[name] = own_errors
                self.distributions.append(name)

    def _study_weights(self) -> None:
        if not any(self._is_free):
            return
        before = self._outputs(self._pool[0])
        state = self.perturbed_state(self.seeds[0], self._numpy_rng())
        self._program.load_state(state, self.state_rows, self._deadline)
        if self._barely_differ(before, self._outputs(self._pool[0])):
            raise BadProblemError("the reference's output does not depend on its weights")

    def _outputs(self, block: np.ndarray) -> np.ndarray:
        specs, outputs, _ = self._program.call(block, self._deadline)
        if specs != self.output_specs:
            raise BadProblemError("the reference's outputs change their form")
        return outputs

    def _barely_differ(self, one: np.ndarray, other: np.ndarray) -> bool:
        return self.compare(one, other, "plain").max_error <= LEAST_CHANGE

    def _own_error(self, block: np.ndarray, outputs: np.ndarray) -> list[float]:
        """The reference's own error, from a run in double precision where the model can do that."""
        try:
            specs, double, _ = self._program.call(block, self._deadline, in_float64=True)
        except Failure:
            specs, double = [], np.empty(0)
        if specs != equality.widened(self.output_specs):
            return [equality.unknown_own_error(spec) for spec in self.output_specs]
        return equality.own_errors(outputs, double, self.output_specs)

    def _numpy_rng(self) -> np.random.Generator:
        return np.random.default_rng(self._secret.getrandbits(60))
