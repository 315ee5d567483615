"""One judgement: what is asked of a candidate, in what order, and what its answers are worth.

Holds the truth, the clock and the comparison. Nothing of the candidate is imported, unpickled or believed here: it is
known only by the bytes in its arena when it answered, and by the kernel's time of its answer.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from tasks.judge import timing
from tasks.judge.equality import form_mismatch
from tasks.judge.pair import Pair
from tasks.judge.processes import Failure, WorkerProcess
from tasks.judge.study import Study
from tasks.judge.track import observed_track
from tasks.judge.verdict import Check, Status, Timing, Track
from tasks.judge.wire import DeadlineError, WireError
from tasks.params import JudgeParams
from tasks.variants.candidate import Candidate

BASELINE = "eager"
PLAIN = "plain"
TIMING_SHARE = 0.15
EXCHANGES = 9
MAX_ERROR = 1e30  # instead of infinity, which JSON has no word for

_STATUS_OF_FAILURE = {"raised": Status.CRASHED, "build": Status.COMPILE_ERROR, "output": Status.WRONG_OUTPUT}


class RefusedError(Exception):
    """The judgement ends here, with this status."""

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

    def passed(self, name: str, words: str = "") -> None:
        self.checks.append(Check(name=name, passed=True, evidence=words))

    def refuse(self, name: str, status: Status, words: str) -> NoReturn:
        self.checks.append(Check(name=name, passed=False, evidence=words))
        raise RefusedError(status, words)


class Examination:
    """The judgement of one candidate."""

    def __init__(
        self,
        study: Study,
        spawn: Callable[[], WorkerProcess],
        params: JudgeParams,
        *,
        evidence: Evidence,
        rng: random.Random,
    ) -> None:
        self._study = study
        self._params = params
        self._evidence = evidence
        self._rng = rng
        self._numpy_rng = np.random.default_rng(rng.getrandbits(60))
        self._inputs = study.fresh_inputs(rng)
        self._seeds = rng.sample(study.seeds, 2)
        self._pair = Pair(study, spawn, seed=self._seeds[0], timeout_s=params.timeout_s)
        self._right_answers: set[int] = set()
        self._last_ms = (0.0, 0.0)

    def run(self, candidate: Candidate) -> None:
        """Check and time the candidate; what is found goes to the evidence.

        Raises:
            RefusedError: as soon as the outcome is known and not CORRECT.
            WorkerError: if the reference fails, which ran before.
        """
        try:
            takes_weights = self._pair.load(candidate)
            self._check_trials(takes_weights)
            self._measure()
        except Failure as failure:
            self._stop(_STATUS_OF_FAILURE.get(failure.kind, Status.CRASHED), failure.text)
        except DeadlineError:
            self._stop(Status.TIMEOUT, f"no answer within {self._params.timeout_s:g} s")
        except WireError as error:
            self._stop(Status.CRASHED, str(error))

    def close(self) -> None:
        self._pair.close()

    def _stop(self, status: Status, detail: str) -> NoReturn:
        log = self._pair.candidate.worker.log if status is not Status.WRONG_OUTPUT else ""
        raise RefusedError(status, f"{detail}\nlast output:\n{log}" if log else detail) from None

    def _check_trials(self, takes_weights: bool) -> None:
        first_answer = self._try("fresh_inputs", hold=True)
        self._try("called_twice", slot=1)
        if not np.array_equal(self._pair.held_answer(slot=0), first_answer):
            self._evidence.refuse("output_kept", Status.WRONG_OUTPUT, "an output was overwritten by the next call")
        self._evidence.passed("output_kept")
        if not takes_weights:
            self._evidence.passed("state_dict", "unlike the reference's: only weights made from seeds were tried")
        for _ in range(1, self._params.trials):
            self._try(self._change_weights(takes_weights))
        for distribution in self._study.distributions:
            self._try(f"{distribution}_inputs", distribution)

    def _change_weights(self, takes_weights: bool) -> str:
        """Give both models other weights; returns what that trial is called."""
        if not self._study.state_rows:
            return "fresh_inputs"
        if takes_weights:
            self._pair.load_state(self._study.perturbed_state(self._seeds[0], self._numpy_rng))
            return "changed_weights"
        self._pair.rebuild(self._seeds[1])
        return "other_seed"

    def _try(self, name: str, distribution: str = PLAIN, *, slot: int = 0, hold: bool = False) -> np.ndarray:
        """One untimed call on inputs that the candidate has not seen. The truth is computed after its answer.

        Returns:
            The bytes of the candidate's outputs, found equal to the reference's.
        """
        block = next(self._inputs)
        if distribution != PLAIN:
            block = self._study.transformed(block, distribution, self._numpy_rng)
        fresh = self._rng.random() < 0.5
        outputs, candidate_ms = self._answer(block, slot=slot, fresh=fresh, hold=hold)
        truth, reference_ms = self._pair.truth(block, slot=slot, fresh=fresh, hold=hold)
        self._last_ms = (reference_ms, candidate_ms)
        error = self._compare(name, outputs, truth, distribution, slot=slot)
        self._evidence.passed(name, f"error {error:.2g} of what is allowed")
        return outputs

    def _answer(
        self, block: np.ndarray, *, slot: int = 0, fresh: bool = False, hold: bool = False
    ) -> tuple[np.ndarray, float]:
        """The candidate's outputs and the ms they took."""
        specs, outputs, taken_ms = self._pair.answer(block, slot=slot, fresh=fresh, hold=hold)
        mismatch = form_mismatch(specs, self._study.output_specs)
        if mismatch:
            self._evidence.refuse("output_form", Status.WRONG_OUTPUT, mismatch)
        if not self._pair.has_inputs(block, slot=slot):
            self._evidence.refuse("inputs_unchanged", Status.WRONG_OUTPUT, "the candidate changed its inputs")
        return outputs, taken_ms

    def _compare(self, name: str, outputs: np.ndarray, truth: np.ndarray, distribution: str, *, slot: int) -> float:
        """The error as a multiple of what is allowed."""
        found = self._study.compare(outputs, truth, distribution)
        self._evidence.max_error = max(self._evidence.max_error or 0.0, min(found.max_error, MAX_ERROR))
        digest = hash(outputs.tobytes())
        if found.is_equal:
            self._right_answers.add(digest)
            return found.max_error
        if digest in self._right_answers:
            self._evidence.refuse(name, Status.CHEATED, "the answer to other inputs was given again")
        late = self._pair.late_answer(truth.size, slot=slot)
        if self._study.compare(late, truth, distribution).is_equal:
            words = "the right output came after the answer: work was put off"
            self._evidence.refuse(name, Status.CHEATED, words)
        self._evidence.refuse(name, Status.WRONG_OUTPUT, found.detail)

    def _measure(self) -> None:
        exchange_ms = timing.exchange_ms([self._pair.exchange_ms() for _ in range(EXCHANGES)])
        last_ms = [timing.net_ms(time_ms, exchange_ms) for time_ms in self._last_ms]
        calls = timing.calls_per_round(math.sqrt(math.prod(last_ms)))
        rounds = timing.affordable_rounds(
            self._params.rounds, round_ms=calls * sum(last_ms), budget_s=TIMING_SHARE * self._params.timeout_s
        )

        def pair(reference_first: bool) -> tuple[float, float]:
            reference_ms, candidate_ms = self._timed_pair(reference_first)
            return timing.net_ms(reference_ms, exchange_ms), timing.net_ms(candidate_ms, exchange_ms)

        taken = timing.measure_until_settled(pair, rounds=rounds, calls=calls, rng=self._rng)
        if taken.standard_error > timing.UNSTABLE_ERROR:
            words = f"after {len(taken.candidate_ms)} rounds the speedup is known to {taken.standard_error:.0%} only"
            self._evidence.refuse("settled", Status.UNSTABLE, words)
        self._evidence.passed("timed_outputs", f"{len(taken.candidate_ms) * calls} calls compared")
        compiled_frames = self._pair.compiled_frames()
        self._evidence.track = observed_track(self._pair.candidate.worker.pid, compiled_frames=compiled_frames)
        self._evidence.timing = Timing(
            baseline=BASELINE, reference_ms=taken.reference_ms, candidate_ms=taken.candidate_ms
        )

    def _timed_pair(self, reference_first: bool) -> tuple[float, float]:
        """Both programs on the same new inputs, and the comparison of what came out."""
        block = next(self._inputs)
        if reference_first:
            truth, reference_ms = self._pair.truth(block)
            outputs, candidate_ms = self._answer(block)
        else:
            outputs, candidate_ms = self._answer(block)
            truth, reference_ms = self._pair.truth(block)
        self._compare("timed_outputs", outputs, truth, PLAIN, slot=0)
        return reference_ms, candidate_ms
