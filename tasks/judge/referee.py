"""One judgement: what is asked of a candidate, in what order, and what its answers are worth.

Holds the truth, the clock and the comparison. Nothing of the candidate is imported, unpickled or believed here: it is
known only by the bytes in its arena when it answered, and by the kernel's time of its answer.
"""

import random
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tasks.judge import timing
from tasks.judge.processes import Failure, WorkerProcess
from tasks.judge.reference import Layout, Program, Reference
from tasks.judge.screen import CLASS_NAME
from tasks.judge.verdict import Check, Status, Timing, Track
from tasks.judge.wire import DeadlineError, WireError
from tasks.params import JudgeParams
from tasks.variants.candidate import Candidate

TIMING_SHARE = 0.15
LATE_S = 0.05

_FAILURES = {"raised": Status.CRASHED, "build": Status.COMPILE_ERROR, "output": Status.WRONG_OUTPUT}


class RefusedError(Exception):
    """The candidate's judgement ends here, with this status."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


@dataclass(kw_only=True, slots=True)
class Evidence:
    """What has been found so far; becomes part of the verdict however the judgement ends."""

    checks: list[Check] = field(default_factory=list)
    max_error: float | None = None
    timing: Timing | None = None
    track: Track | None = None


class Examination:
    """The judgement of one candidate against a reference that has been studied."""

    def __init__(
        self, reference: Reference, worker: WorkerProcess, params: JudgeParams, *, evidence: Evidence, rng: random.Random
    ) -> None:
        self._reference = reference
        self._params = params
        self._evidence = evidence
        self._rng = rng
        self._numpy_rng = np.random.default_rng(rng.getrandbits(60))
        self._inputs = reference.fresh_inputs(rng)
        self._program = Program(worker, layout_for(reference))
        self._deadline = time.monotonic() + params.timeout_s
        self._right_answers: set[int] = set()
        self._last_ms = (0.0, 0.0)

    def run(self, candidate: Candidate) -> None:
        """Check and time the candidate.

        Raises:
            RefusedError: as soon as the outcome is known and not CORRECT.
        """
        try:
            loadable, seeds = self._start(candidate)
            self._check_trials(loadable, seeds)
            self._measure()
        except Failure as failure:
            raise RefusedError(_FAILURES.get(failure.kind, Status.CRASHED), failure.text) from None
        except DeadlineError:
            raise RefusedError(Status.TIMEOUT, f"no answer within {self._params.timeout_s:g} s") from None
        except WireError as error:
            raise RefusedError(Status.CRASHED, str(error)) from None

    def _start(self, candidate: Candidate) -> tuple[bool, list[int]]:
        """Load and build; whether the reference's weights fit the candidate, and the seeds to build under."""
        program, reference = self._program, self._reference
        program.load(candidate.source, filename="candidate.py", class_name=CLASS_NAME, deadline=self._deadline)
        seeds = self._rng.sample(reference.seeds, 2)
        state = program.build(seeds[0], reference.init_inputs, self._deadline)
        forms = {name: (spec.dtype, list(spec.shape)) for name, spec, _ in state}
        loadable = all(forms.get(name) == (dtype, shape) for name, dtype, shape in reference.state_rows)
        if not loadable:
            self._note("state_dict", "names or shapes differ from the reference's: only seeded weights were tried")
        program.worker.ask("inputs", self._deadline, inputs=reference.input_rows)
        reference.use_seed(seeds[0])
        return loadable, seeds

    def _check_trials(self, loadable: bool, seeds: list[int]) -> None:
        self._try("fresh_inputs", "plain", hold=True)
        self._try("called_twice", "plain", slot=1)
        self._check_held()
        for number in range(1, self._params.trials):
            self._change_weights(loadable, seeds[min(number, 1)], seeds[0])
            self._try("changed_weights" if loadable else "other_seed", "plain")
        for name in self._reference.distributions:
            self._try(f"{name}_inputs", name)

    def _change_weights(self, loadable: bool, seed: int, first_seed: int) -> None:
        reference, program = self._reference, self._program
        program.worker.thaw()
        if loadable and reference.state_rows:
            block = reference.perturbed_state(first_seed, self._numpy_rng)
            reference.worker.thaw()
            reference.load_state(block, reference.state_rows, reference.deadline)
            program.load_state(block, reference.state_rows, self._deadline)
        elif not loadable:
            program.build(seed, reference.init_inputs, self._deadline)
            reference.worker.thaw()
            reference.use_seed(seed)

    def _try(self, name: str, distribution: str, *, slot: int = 0, hold: bool = False) -> None:
        """One untimed call on inputs that the candidate has not seen, and its comparison."""
        block = next(self._inputs)
        if distribution != "plain":
            block = self._reference.transformed(block, distribution, self._numpy_rng)
        outputs, candidate_ms = self._answer(block, slot=slot, fresh=self._rng.random() < 0.5, hold=hold)
        truth, reference_ms = self._reference.truth(block)
        self._last_ms = (reference_ms, candidate_ms)
        self._compare(name, outputs, truth, distribution, slot=slot)

    def _answer(
        self, block: np.ndarray, *, slot: int = 0, fresh: bool = False, hold: bool = False
    ) -> tuple[np.ndarray, float]:
        program = self._program
        specs, outputs, taken_ms = program.call(block, self._deadline, slot=slot, fresh=fresh, hold=hold)
        mismatch = form_mismatch(specs, self._reference.output_specs)
        if mismatch:
            self._fail("output_form", Status.WRONG_OUTPUT, mismatch)
        at = program.layout.inputs_at[slot]
        if not np.array_equal(program.worker.arena.bytes[at : at + block.size], block):
            self._fail("inputs_unchanged", Status.WRONG_OUTPUT, "the candidate changed its inputs")
        return outputs, taken_ms

    def _compare(self, name: str, outputs: np.ndarray, truth: np.ndarray, distribution: str, *, slot: int) -> None:
        found = self._reference.compare(outputs, truth, distribution)
        self._evidence.max_error = max(self._evidence.max_error or 0.0, found.max_error)
        digest = hash(outputs.tobytes())
        if found.is_equal:
            self._right_answers.add(digest)
            self._evidence.checks.append(
                Check(name=name, passed=True, evidence=f"error {found.max_error:.2g} of what is allowed")
            )
            return
        if digest in self._right_answers:
            self._fail(name, Status.CHEATED, "the answer to other inputs was given again")
        if self._answers_late(truth, distribution, slot):
            self._fail(name, Status.CHEATED, "the right output came after the answer: work was put off")
        self._fail(name, Status.WRONG_OUTPUT, found.detail)

    def _answers_late(self, truth: np.ndarray, distribution: str, slot: int) -> bool:
        program = self._program
        program.worker.thaw()
        time.sleep(LATE_S)
        late = program.worker.arena.read(program.layout.outputs_at[slot], truth.size)
        return self._reference.compare(late, truth, distribution).is_equal

    def _check_held(self) -> None:
        """Whether the output of the first call survived the second one."""
        first = self._program.worker.arena.read(self._program.layout.outputs_at[0], 0)
        specs, again, _ = self._program.recopy(self._deadline, slot=0)
        del first
        if form_mismatch(specs, self._reference.output_specs) or hash(again.tobytes()) not in self._right_answers:
            self._fail("output_kept", Status.WRONG_OUTPUT, "an output was overwritten by the next call")
        self._evidence.checks.append(Check(name="output_kept", passed=True))

    def _measure(self) -> None:
        reference = self._reference
        exchange_ms = timing.exchange_ms(reference.exchange_samples_ms())
        self._last_ms = (timing.net_ms(self._last_ms[0], exchange_ms), timing.net_ms(self._last_ms[1], exchange_ms))
        rounds = timing.affordable_rounds(
            self._params.rounds, round_ms=sum(self._last_ms), budget_s=TIMING_SHARE * self._params.timeout_s
        )
        calls = timing.calls_per_round(min(self._last_ms))
        taken = self._measure_rounds(rounds, calls, exchange_ms)
        if not taken.is_settled:
            taken = self._measure_rounds(2 * rounds, calls, exchange_ms)
        if not taken.is_settled:
            detail = f"the speed ratios spread over {taken.spread:.0%} of their median"
            self._fail("settled", Status.UNSTABLE, detail)
        self._evidence.checks.append(Check(name="timed_outputs", passed=True, evidence=f"{rounds * calls} calls compared"))
        self._evidence.track = self._observed_track()
        self._evidence.timing = Timing(
            baseline="eager", reference_ms=taken.reference_ms, candidate_ms=taken.candidate_ms
        )

    def _measure_rounds(self, rounds: int, calls: int, exchange_ms: float) -> timing.Rounds:
        pending: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        blocks = {}

        def block_of(number: int) -> np.ndarray:
            if number not in blocks:
                blocks.clear()
                blocks[number] = next(self._inputs)
            return blocks[number]

        def settle(number: int, side: int, outputs: np.ndarray) -> None:
            other = pending.pop(1 - side, None)
            if other is None:
                pending[side] = (outputs, outputs)
                return
            pair = {side: outputs, 1 - side: other[0]}
            self._compare_timed(pair[1], pair[0])

        def reference(number: int) -> float:
            outputs, taken_ms = self._reference.truth(block_of(number))
            settle(number, 0, outputs)
            return timing.net_ms(taken_ms, exchange_ms)

        def candidate(number: int) -> float:
            outputs, taken_ms = self._answer(block_of(number))
            settle(number, 1, outputs)
            return timing.net_ms(taken_ms, exchange_ms)

        return timing.measure_rounds(reference, candidate, rounds=rounds, calls=calls, rng=self._rng)

    def _compare_timed(self, outputs: np.ndarray, truth: np.ndarray) -> None:
        raise NotImplementedError
