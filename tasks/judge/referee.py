"""One judgement: trials, timing, and a second look where the speedup is too good to be believed at once."""

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from tasks.errors import FullDeviceError
from tasks.judge import timing
from tasks.judge.device_stopwatch import DeviceStopwatch
from tasks.judge.evidence import Evidence, RefusedError
from tasks.judge.jumps import jump
from tasks.judge.long import BUCKET_MEANS, OnProgress, measure_window
from tasks.judge.opinions import roofline
from tasks.judge.pair import Pair
from tasks.judge.processes import Failure, WorkerProcess
from tasks.judge.room import MeasuredAlone
from tasks.judge.slots import Seat
from tasks.judge.stopwatch import Stopwatch
from tasks.judge.study import Study
from tasks.judge.track import observed_track
from tasks.judge.trials import Trials
from tasks.judge.verdict import UNEVEN_CALLS, Check, Status, Timing
from tasks.judge.wire import DeadlineError, WireError
from tasks.params import JudgeParams
from tasks.variants.candidate import Candidate

BASELINE = "eager"
TIMING_SHARE = 0.15
RETRIED_SHARE = 0.3
"""Share of the timed rounds with a trial before them, so that no call can know whether it is timed."""
CHEAP_STATE_BYTES = 1 << 20

_STATUS_OF_FAILURE = {
    "raised": Status.CRASHED,
    "build": Status.COMPILE_ERROR,
    "output": Status.WRONG_OUTPUT,
    "size": Status.WRONG_OUTPUT,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Circumstances:
    """What a judgement depends on besides the programs and the params."""

    rng: random.Random
    device: str
    """The model's name."""
    best_speedup: float | None
    """The best known for the problem, if any: a jump over it is looked at twice."""
    on_progress: OnProgress
    """Told how far the long tier is."""


class Examination:
    """The judgement of one candidate."""

    def __init__(
        self,
        study: Study,
        spawn: Callable[[], WorkerProcess],
        params: JudgeParams,
        *,
        evidence: Evidence,
        circumstances: Circumstances,
        seat: Seat | MeasuredAlone,
    ) -> None:
        """Start the candidate's process.

        Args:
            spawn: starts a worker whose arena has the roomy layout.
            seat: taken before anything is measured; what is built, at loading or at the first call, is built without.
        """
        self._study = study
        self._params = params
        self._evidence = evidence
        self._circumstances = circumstances
        self._seat = seat
        self._rng = circumstances.rng
        self._inputs = study.fresh_inputs(self._rng)
        self._seeds = self._rng.sample(study.seeds, 2)
        self._new_pair = partial(Pair, study, spawn, timeout_s=params.timeout_s)
        self._pair = self._new_pair(seed=self._seeds[0])
        self._stopwatch = Stopwatch if params.device == "cpu" else DeviceStopwatch

    def run(self, candidate: Candidate) -> None:
        """Check and time the candidate; what is found goes to the evidence.

        Raises:
            RefusedError: as soon as the outcome is known and not CORRECT.
            WorkerError: if the reference fails, which ran before.
        """
        try:
            trials = self._begin(candidate)
            first = trials.try_first()
            self._take_seat()
            trials.run(self._params.trials, first=first)
            found = self._measure(trials)
            num_graphs, num_kernels = self._pair.num_made()
            self._evidence.track = observed_track(
                self._pair.candidate.worker.pid, num_graphs=num_graphs, num_kernels=num_kernels
            )
            if reason := self._jump(found):
                found = self._look_again(candidate, found, reason)
            self._compare_with_bound(found)
            self._evidence.timing = found
        except Failure as failure:
            self._stop(_STATUS_OF_FAILURE.get(failure.kind, Status.CRASHED), failure.text)
        except DeadlineError:
            self._stop(Status.TIMEOUT, f"no answer within {self._params.timeout_s:g} s")
        except WireError as error:
            self._stop(Status.CRASHED, str(error))
        except (FullDeviceError, MemoryError):  # found by the reference or the referee, whoever has filled the device
            if blame := self._pair.candidate.worker.blame_for_memory():
                self._stop(Status.CRASHED, blame)
            raise

    def close(self) -> None:
        self._pair.close()

    def _take_seat(self) -> None:
        """Wait for a seat, which costs the candidate none of its time."""
        with self._pair.uncounted():
            self._seat.take()

    def _stop(self, status: Status, detail: str) -> NoReturn:
        log = self._pair.candidate.worker.log if status is not Status.WRONG_OUTPUT else ""
        raise RefusedError(status, f"{detail}\nlast output:\n{log}" if log else detail) from None

    def _begin(self, candidate: Candidate) -> Trials:
        """Load the candidate into the pair's fresh process."""
        return Trials(
            self._pair,
            self._study,
            self._evidence,
            inputs=self._inputs,
            seeds=self._seeds,
            takes_weights=self._pair.load(candidate),
            rng=self._rng,
        )

    def _measure(self, trials: Trials) -> Timing:
        """Time one session of a pair that has answered right."""
        params = self._params
        self._pair.allow_time()  # what was built, and how long that took, is done
        stopwatch = self._stopwatch(
            self._pair,
            self._inputs,
            rounds=params.rounds,
            budget_s=TIMING_SHARE * params.timeout_s,
            compare=trials.compare_timed,
            rng=self._rng,
            **({"disguise": trials.disguise} if params.device == "cpu" else {}),
        )
        is_cheap = self._pair.state_bytes <= CHEAP_STATE_BYTES

        def take_round() -> timing.Round:
            if self._rng.random() < RETRIED_SHARE:
                trials.try_again(weights=is_cheap)
            taken = stopwatch.take_round()
            self._require_our_loop()
            return taken

        trials.change_weights()  # what a candidate made of them before the clock started is stale
        trials.keep_one()
        if params.tier == "long":
            found, steady = self._window_timing(take_round)
        else:
            found, steady = self._screen_timing(take_round, stopwatch.rounds)
        self._pair.allow_time()  # how many more calls there are is our choice, and more where a reference takes more
        trials.try_moved_again()  # before it is called unstable, which says that it is right
        trials.require_kept_one()
        self._evidence.passed("timed_outputs", f"{trials.num_timed} timed calls compared")
        self._evidence.require(steady, Status.UNSTABLE)
        if (charge := stopwatch.evenness.charge) > 1.0:
            words = f"calls take {charge:.2f} times as long as the quickest on average, unlike the reference's"
            self._evidence.passed(UNEVEN_CALLS, words)
        return found.charged(charge)

    def _require_our_loop(self) -> None:
        """Refuse a candidate that answers calls from a loop of its own, whose cost is not what is taken off."""
        with self._pair.uncounted():
            is_ours = self._pair.candidate.worker.waits_in_its_place()
        if not is_ours:
            words = "calls are answered from a loop of the candidate's own"
            self._evidence.refuse("judges_loop", Status.CHEATED, words)

    def _screen_timing(self, take_round: Callable[[], timing.Round], rounds: int) -> tuple[Timing, Check]:
        """The times, and whether the speedup is known well enough."""
        taken = timing.measure_until_settled(take_round, rounds=rounds, settled_error=self._params.settled_error)
        error = taken.standard_error
        words = f"after {len(taken.candidate_ms)} rounds the speedup is known to {error:.1%}"
        steady = Check(name="settled", passed=error <= timing.UNSTABLE_ERROR, evidence=words)
        return Timing(baseline=BASELINE, reference_ms=taken.reference_ms, candidate_ms=taken.candidate_ms), steady

    def _window_timing(self, take_round: Callable[[], timing.Round]) -> tuple[Timing, Check]:
        """The times, and whether the buckets agree."""

        def take_round_in_time() -> timing.Round:
            self._pair.allow_time()  # the window is our choice: the limit is on every round of it
            return take_round()

        params = self._params.long
        on_progress = self._circumstances.on_progress
        window = measure_window(take_round_in_time, params, rng=self._rng, on_progress=on_progress)
        is_steady = window.variance <= params.max_variance
        words = window.words if is_steady else f"{window.words}; at most {params.max_variance:g} is allowed"
        kept = window.rounds
        found = Timing(
            baseline=BASELINE,
            reference_ms=kept.reference_ms,
            candidate_ms=kept.candidate_ms,
            settled=window.speedup,
        )
        return found, Check(name=BUCKET_MEANS, passed=is_steady, evidence=words)

    def _compare_with_bound(self, found: Timing) -> None:
        """Note a time that the hardware seems not to allow: an alarm for people, never a verdict."""
        pair, on_cuda = self._pair, self._params.device != "cpu"
        num_bytes = pair.state_bytes + pair.input_bytes + pair.output_bytes
        bound = roofline.fastest_bytes_per_s(self._circumstances.device, num_bytes=num_bytes, on_cuda=on_cuda)
        if bound and (words := roofline.alarm(num_bytes, statistics.median(found.candidate_ms), bound)):
            self._evidence.passed("roofline", words)

    def _jump(self, found: Timing) -> str:
        """Why the speedup must be seen twice, in words; empty if it need not."""
        params = self._params
        return jump(
            found.speedup.median,
            best=self._circumstances.best_speedup,
            times_reference=params.jump_speedup,
            times_best=params.jump_over_best,
        )

    def _look_again(self, candidate: Candidate, first: Timing, reason: str) -> Timing:
        """Time a candidate that seems much faster in fresh processes; the lesser claim of two that agree.

        Luck, a disturbed reference or a state that only the first processes had do not come twice. In the screen a
        third look decides where two differ: what takes microseconds beside a millisecond differs from one process to
        the next. Where all are far above what the noise of a call moves them by, the least is paid.
        """
        params = self._params
        is_long = params.tier == "long"
        tolerance = params.long.second_look_tolerance if is_long else params.second_look_tolerance
        looks, words = [first], reason
        for _ in range(1 if is_long else 2):
            looks.append(self._look_afresh(candidate))
            last = looks[-1].speedup.median
            words += f"; {last:.2f}x in fresh processes"
            for earlier in looks[:-1]:
                if timing.agree(earlier.speedup.median, last, tolerance=tolerance):
                    self._evidence.passed("second_look", words)
                    return earlier if timing.nearer_to_one(earlier.speedup.median, last) else looks[-1]
        least = min(looks, key=lambda look: look.speedup.median)
        if least.speedup.median >= timing.SURELY_LARGE:
            self._evidence.passed("second_look", f"{words}; the least is paid")
            return least
        self._evidence.refuse("second_look", Status.UNSTABLE, f"{words}: they differ by more than {tolerance:.0%}")

    def _look_afresh(self, candidate: Candidate) -> Timing:
        self._pair.close()
        self._seat.leave()  # fresh processes build everything anew
        self._pair = self._new_pair(seed=self._seeds[0])
        trials = self._begin(candidate)
        trials.try_once("second_look_outputs", hold=True)
        self._take_seat()
        return self._measure(trials)
