"""The reference in the process of its study: what it draws and what it returns, also in double precision."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from tasks.errors import FullDeviceError
from tasks.judge import equality
from tasks.judge.blocks import of_all
from tasks.judge.close_look import NUDGE, NUDGES, CloseLook
from tasks.judge.device_memory import is_about_full_device
from tasks.judge.processes import Failure, WorkerProcess
from tasks.judge.program import TEXT_BYTES, Arguments, Layout, Program, StateRow
from tasks.judge.weights import Weights
from tasks.judge.wire import TensorSpec, offsets
from tasks.problems.problem import Problem

CLASS_NAME = "Model"
FILE_NAME = "reference.py"
REGION_BYTES = 512 << 20
LAYOUT = Layout.fitting(state_bytes=REGION_BYTES, input_bytes=REGION_BYTES, output_bytes=REGION_BYTES)
LARGE_LAYOUT = Layout.fitting(state_bytes=REGION_BYTES, input_bytes=9 << 27, output_bytes=4 << 30)
"""On a device, for what does not fit into the other: 16 problems of KernelBench v0. One more fits into neither."""
LIMIT_S = 60.0
MAX_NUDGED = 1e-2
"""As a share of the output: what a nudge of the inputs may change at most where it crosses no step."""
MAX_STEPS = 1e-2
"""The share of whole numbers that may cross one."""


class BadProblemError(Exception):
    """The reference fails, is not deterministic, or its output does not depend on what it should."""


class NoRoomError(BadProblemError):
    """The reference takes or returns more than there is room for."""


def refusal(words: str, failure: Failure) -> Exception:
    """What a failing reference means. That others fill its device says nothing about it."""
    if is_about_full_device(failure.text):
        return FullDeviceError(f"the device has no memory left for the reference: {failure.text}")
    if failure.kind == "size":
        return NoRoomError(f"{words}:\n{failure.text}")
    return BadProblemError(f"{words}:\n{failure.text}")


class Reference:
    """Trusted, but behind the same walls as a candidate. Methods raise what a failing process raises."""

    def __init__(self, problem: Problem, worker: WorkerProcess, layout: Layout = LAYOUT) -> None:
        """Load the program and find out what its model is made from.

        Args:
            layout: of the worker's arena.
        """
        self.worker = worker
        self._program = Program(worker, layout)
        self._precision = problem.precision
        self._program.load(
            problem.source,
            filename=FILE_NAME,
            class_name=CLASS_NAME,
            precision=problem.precision,
            deadline=self._deadline,
        )
        self.init_inputs = self._arguments("init_inputs")

    @property
    def _deadline(self) -> float:
        return time.monotonic() + LIMIT_S

    def draw(self, seed: int, *, carries_numbers: bool) -> Arguments:
        """New inputs. Numbers that are not tensors come as tensors if they are to be carried."""
        return self._arguments("draw", seed=seed, carries_numbers=carries_numbers)

    def expect_inputs(self, inputs: Arguments) -> None:
        self._program.expect_inputs(inputs, self._deadline)

    def weights(self, seeds: Sequence[int]) -> Weights:
        """What the model is made of under each seed."""
        states = {}
        rows: list[StateRow] = []
        for seed in seeds:
            rows, _ = self._program.build(seed, self.init_inputs, self._deadline)
            states[seed] = self._program.save_state(offsets([spec for _, spec, _ in rows])[1], self._deadline)
        return Weights(rows, states, first_alike=self._program.first_alike(self._deadline))

    def use_weights(self, weights: Weights, seed: int, state: np.ndarray | None = None) -> None:
        """Go on with the model of a seed, as it was made or in another state."""
        self._program.build(seed, self.init_inputs, self._deadline)
        self._program.load_state(weights.states[seed] if state is None else state, weights.rows, self._deadline)

    def call(self, block: np.ndarray) -> tuple[list[TensorSpec], np.ndarray, float]:
        """The outputs for these inputs, and the ms they took.

        The tensors come again, as in half of the trials: what a call leaves on them shows.
        """
        return self._program.call(block, self._deadline, same=True)

    @property
    def is_plain(self) -> bool:
        """Whether its calls could be answered shortly, by the addresses of their outputs."""
        return self._program.is_plain

    def has_inputs(self, block: np.ndarray) -> bool:
        """Whether the inputs of the last call still are what they were."""
        with self.worker.referees_turn():
            now = self.worker.arena.read_block(self._program.layout.inputs_at[0], block.size)
            return equality.is_same(now, block)

    def in_double(
        self,
        block: np.ndarray,
        specs: Sequence[TensorSpec],
        *,
        nudge: float = 0.0,
        seed: int = 0,
        rounded: bool = False,
    ) -> np.ndarray | None:
        """The outputs in double precision, or nothing where the model cannot do that, or not on these values.

        Raises:
            FullDeviceError: if a device has no memory for it just now: no candidate may gain or lose by that.
        """
        try:
            found, outputs = self._program.call_in_float64(
                block, self._deadline, nudge=nudge, seed=seed, rounded=rounded
            )
        except Failure as failure:
            if is_about_full_device(failure.text):
                raise FullDeviceError(
                    f"the reference could not be run in double precision: {failure.text}"
                ) from failure
            return None
        return outputs if found == equality.widened(specs) else None

    def looks(self, block: np.ndarray, specs: Sequence[TensorSpec]) -> Iterator[CloseLook]:
        """What there is to know about rounding on these inputs, if anything; each time with more nudges."""
        exact = self.in_double(block, specs)
        if exact is None:
            return
        rounded = self.in_double(block, specs, rounded=True) if self._precision == "tf32" else None
        with self.worker.referees_turn():
            look = CloseLook(exact, specs, rounded=rounded)
        for num_before, count in pairwise((0, *NUDGES)):
            for seed in range(num_before, count):
                nudged = self.in_double(block, specs, nudge=NUDGE, seed=seed)
                if nudged is not None:
                    with self.worker.referees_turn():
                        look.add(nudged)
                del nudged  # before there is another, and before anybody compares
            yield look

    def own_errors(self, block: np.ndarray, outputs: np.ndarray, specs: Sequence[TensorSpec]) -> list[float]:
        """The reference's own error per output, from a run in double precision where the model can do that."""
        return self._own_errors(self.in_double(block, specs), block, outputs, specs)

    def steady_errors(
        self, block: np.ndarray, outputs: np.ndarray, specs: Sequence[TensorSpec], *, is_far: bool = False
    ) -> list[float] | None:
        """As own_errors, or nothing where rounding decides more than a few values of the output.

        Args:
            is_far: whether inputs or weights are far from what a problem is made for. Who cannot run there in double
                precision is not taken to be steady there.
        """
        exact = self.in_double(block, specs)
        if (is_far and exact is None) or not self._are_steady(exact, block, specs):
            return None
        return self._own_errors(exact, block, outputs, specs)

    def is_steady(self, block: np.ndarray, specs: Sequence[TensorSpec]) -> bool:
        """Whether no tie or step lies where rounding decides on these inputs, or for few whole numbers only.

        Of those a close look knows what else they may be.
        """
        return self._are_steady(self.in_double(block, specs), block, specs)

    def _own_errors(
        self, exact: np.ndarray | None, block: np.ndarray, outputs: np.ndarray, specs: Sequence[TensorSpec]
    ) -> list[float]:
        if exact is None:
            return [equality.unknown_own_error(spec) for spec in specs]
        with self.worker.referees_turn():
            found = equality.own_errors(outputs, exact, specs)
        if self._precision != "tf32":
            return found
        rounded = self.in_double(block, specs, rounded=True)
        if rounded is None:
            return found
        with self.worker.referees_turn():
            return list(map(max, found, equality.own_errors(rounded, exact, equality.widened(specs))))

    def _are_steady(self, exact: np.ndarray | None, block: np.ndarray, specs: Sequence[TensorSpec]) -> bool:
        nudged = None if exact is None else self.in_double(block, specs, nudge=NUDGE)
        if exact is None or nudged is None:
            return all(equality.is_inexact(spec) for spec in specs)
        wide = equality.widened(specs)
        with self.worker.referees_turn():
            return all(
                self._is_steady(equality.as_array(nudged, spec, start), equality.as_array(exact, spec, start), spec)
                for spec, start in zip(wide, offsets(wide)[0], strict=True)
            )

    @staticmethod
    def _is_steady(nudged: np.ndarray, exact: np.ndarray, spec: TensorSpec) -> bool:
        if not equality.is_inexact(spec):
            return int(of_all(np.sum, nudged != exact)) <= MAX_STEPS * exact.size
        allowed = MAX_NUDGED / equality.OWN_ERROR_FACTOR
        return equality.compare(nudged.view(np.uint8), exact.view(np.uint8), [spec], [allowed]).is_equal

    def _arguments(self, operation: str, **fields: Any) -> Arguments:
        # Through the host's memory: others may be having their turn on the device.
        capacity = self._program.layout.input_bytes
        answer = self.worker.ask(operation, self._deadline, at=TEXT_BYTES, capacity=capacity, **fields)
        arguments = Arguments.from_json(answer["arguments"], np.empty(0, dtype=np.uint8))
        return replace(arguments, block=self.worker.arena.read_host(TEXT_BYTES, offsets(arguments.specs)[1]))
