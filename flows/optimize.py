"""One optimization of a user's module: search, drop-in, verdict; journalled, so that a killed one continues.

Neither a stage nor the command line: `cuda-l1 optimize` and the benchmark of it both come here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from flows.optimize_judging import FINAL, GRADIENTS, LONG, Judges, Record
from tasks.errors import ProblemError, RecordError, RetryableError
from tasks.judge.baselines import baseline_candidate, usable_baselines
from tasks.judge.verdict import Speedup, Status, Verdict
from tasks.params import JudgeParams
from tasks.problems.problem import Problem
from tasks.search.contributions import Contribution
from tasks.search.drop_in import DropIn, drop_in
from tasks.search.found import Scored, best_baseline, ranked
from tasks.search.gradients import gradient_case
from tasks.search.proposers import Proposer
from tasks.search.report import GRADIENTS_IN_WORDS
from tasks.search.search import AGAIN, SCREEN, Budget, Progress, Search
from tasks.search.survey import Survey
from tasks.search.texts import ProblemTexts
from tasks.search.user_file import UserFile
from tasks.search.writers import Asked
from tasks.variants.candidate import Candidate

NUM_AGAIN, NUM_FINAL = 4, 2
NOISY_TRIES = 2
"""A verdict that is only unstable is asked for again: other work on the machine does that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What a user chooses."""

    seconds: float
    window_s: float
    """Of the long tier for the winner; 0 leaves it out."""
    judge: JudgeParams
    """What all rungs have in common: device, workers, limits."""
    candidates: int | None = None
    patience: int | None = None
    seed: int = 0
    checks_gradients: bool = True
    baselines: tuple[str, ...] | None = None
    """Ways of running the reference that must be beaten; without them all that the device allows."""


@dataclass(kw_only=True, slots=True)
class Outcome:
    """What came of it."""

    progress: Progress
    baselines: list[Scored] = field(default_factory=list)
    finals: list[tuple[DropIn, Scored]] = field(default_factory=list)
    winner: tuple[DropIn, Scored] | None = None
    """Only where its interval lies above that of the best baseline."""
    gradients: Verdict | None = None
    asked: list[Asked] = field(default_factory=list)
    """Questions to language models and policies, with their answers."""
    contributions: list[Contribution] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0

    @property
    def baseline(self) -> tuple[str, Speedup]:
        return best_baseline(self.baselines)


class Optimization:
    """Makes one problem faster.

    Args:
        file, facts: the user's file and what is known from running it.
        judges: open ones, possibly shared with other optimizations.
        record: what earlier runs of the same found.
        proposers: take turns.
        on_change: told about the progress of the search.
    """

    def __init__(
        self,
        file: UserFile,
        facts: Survey,
        texts: ProblemTexts,
        *,
        settings: Settings,
        judges: Judges,
        record: Record,
        proposers: Sequence[Proposer],
        on_change: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        self._file, self._facts, self._texts = file, facts, texts
        self._settings, self._judges, self._record = settings, judges, record
        self._search = Search(
            self._judge_shown,
            proposers,
            budget=Budget(seconds=settings.seconds, candidates=settings.candidates, patience=settings.patience),
            workers=settings.judge.workers,
            elapsed_s=record.elapsed_s,
            on_change=on_change,
        )
        self.outcome = Outcome(progress=self._search.progress)

    def run(self) -> Outcome:
        """Search until the budget is spent or `stop` is called, then make and judge the drop-ins.

        Raises:
            ProblemError: if the module cannot serve as the truth.
        """
        outcome = self.outcome
        self._time_baselines(SCREEN)
        self._search.screen()
        self._search.look_again(keep=NUM_AGAIN)
        self._judge_drop_ins()
        if outcome.finals:
            self._decide()
        outcome.interrupted = self._search.is_stopped
        outcome.seconds = self._search.elapsed_s
        return outcome

    def stop(self) -> None:
        """Search no further; what was found until now is looked at as usual."""
        self._search.stop()

    def _time_baselines(self, rung: str) -> None:
        """Time every way of running the reference but eager, which is what all speedups are over."""
        found = []
        for name in usable_baselines(self._settings.judge.device, self._settings.baselines):
            if name == "eager":
                continue
            try:
                candidate = baseline_candidate(self._texts.judged, name)
            except ProblemError:
                continue  # a forward that the class inherits
            verdict = self._judge(self._texts.judged, candidate, rung)
            found.append(Scored(candidate=candidate, verdict=verdict, rung=rung))
        # A baseline that was fast once does not go away because another look at it did not settle.
        before = {each.candidate.candidate_id: each for each in self.outcome.baselines if each.interval}
        self.outcome.baselines = [
            each if each.interval else before.get(each.candidate.candidate_id, each) for each in found
        ]

    def _judge_drop_ins(self) -> None:
        """Judge what would be written for the fastest candidates: the whole file, guards included."""
        progress = self._search.progress
        for scored in ranked(progress.at(AGAIN)) or ranked(progress.at(SCREEN))[:NUM_AGAIN]:
            if len(self.outcome.finals) == NUM_FINAL or (scored.speedup or 0.0) <= 1.0:
                return
            try:
                made = drop_in(
                    self._file,
                    self._facts,
                    scored.candidate,
                    problem_id=self._texts.judged.problem_id,
                    device=self._settings.judge.device.partition(":")[0],
                )
            except RecordError as error:
                progress.failed[scored.candidate.candidate_id] = str(error)
                continue
            verdict = self._judge(self._texts.judged, self._texts.as_judged(made.judged), FINAL)
            final = Scored(candidate=made.judged, verdict=verdict, rung=FINAL)
            progress.scored.append(final)
            if verdict.is_correct:
                self.outcome.finals.append((made, final))

    def _decide(self) -> None:
        """The best drop-in, where it is faster than every baseline for sure."""
        outcome, settings = self.outcome, self._settings
        best = max(outcome.finals, key=lambda pair: _interval(pair[1]).low)
        if outcome.baseline[1].high > 0.8 * _interval(best[1]).low:
            self._time_baselines(FINAL)
        if settings.window_s and _interval(best[1]).low > outcome.baseline[1].high:
            candidate = self._texts.as_judged(best[0].judged)
            verdict = self._judge(self._texts.judged, candidate, LONG)
            best = (best[0], Scored(candidate=candidate, verdict=verdict, rung=LONG))
            self._search.progress.scored.append(best[1])
        is_faster = best[1].interval is not None and best[1].interval.low > outcome.baseline[1].high
        if is_faster and (not settings.checks_gradients or self._has_right_gradients(best[0])):
            outcome.winner = best

    def _has_right_gradients(self, made: DropIn) -> bool:
        problem, candidate = gradient_case(self._texts, made)
        self.outcome.gradients = verdict = self._judge(problem, candidate, GRADIENTS)
        if verdict.status not in GRADIENTS_IN_WORDS:
            self.outcome.progress.failed["gradients"] = f"{verdict.status}: {verdict.detail}"
        return verdict.status in GRADIENTS_IN_WORDS

    def _judge_shown(self, candidate: Candidate, rung: str, best: float | None) -> Verdict:
        return self._judge(self._texts.judged, self._texts.as_judged(candidate), rung, best_speedup=best)

    def _judge(
        self, problem: Problem, candidate: Candidate, rung: str, *, best_speedup: float | None = None
    ) -> Verdict:
        known = self._record.known.get((rung, candidate.candidate_id))
        if known is not None:
            return known
        judge = self._judges.at(rung)
        for left in reversed(range(NOISY_TRIES)):
            try:
                verdict = judge.judge(problem, candidate, seed=self._settings.seed, best_speedup=best_speedup)
            except RetryableError:
                if not left:
                    raise
                continue
            if verdict.status is not Status.UNSTABLE:
                break
        if verdict.status is Status.BAD_PROBLEM and problem is self._texts.judged:
            raise ProblemError(f"{self._file.class_name} cannot be judged: {verdict.detail}")
        self._record.add(rung, verdict, elapsed_s=self._search.elapsed_s)
        return verdict


def _interval(scored: Scored) -> Speedup:
    assert scored.interval is not None
    return scored.interval
