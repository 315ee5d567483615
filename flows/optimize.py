"""One optimization of a user's module: search, drop-in, verdict; journalled, so that a killed one continues.

Neither a stage nor the command line: `cuda-l1 optimize` and the benchmark of it both come here.
"""

from collections.abc import Callable, Sequence

from flows.optimizing.judging import AFRESH, EFFECTS, FINAL, GRADIENTS, LONG, Judges, Record
from flows.optimizing.outcome import NO_TIME, Outcome, Settings
from tasks.errors import ProblemError, RecordError, RetryableError
from tasks.judge.baselines import baseline_candidate, usable_baselines
from tasks.judge.long import told_bucket_means
from tasks.judge.verdict import Speedup, Status, Verdict
from tasks.params.generation import COMPILER
from tasks.problems.problem import Problem
from tasks.search.clock import Clock
from tasks.search.contributions import proposed_as
from tasks.search.drop_in import DropIn, drop_in
from tasks.search.effects import effects_case
from tasks.search.found import Scored, contenders, ranked
from tasks.search.given_up import reason_in, telling
from tasks.search.gradients import gradient_case
from tasks.search.inherited import hidden_forward
from tasks.search.proposers import Proposer
from tasks.search.report import GRADIENTS_IN_WORDS, charges, found_in_words, in_words, one_line, written_by
from tasks.search.search import AGAIN, SCREEN, Budget, Progress, Search
from tasks.search.survey import Survey
from tasks.search.texts import ProblemTexts
from tasks.search.user_file import UserFile
from tasks.variants.candidate import Candidate
from tasks.variants.rewriting import ORIGIN as REWRITES

NUM_AGAIN, NUM_FINAL = 4, 2
ABOUT_EVEN = 1.1
"""What is not surely faster than this may be the reference beside itself, on a busy machine."""
NOISY_TRIES = 2
"""A verdict that other work on the machine may explain is asked for again."""


class Optimization:
    """Makes one problem faster.

    Args:
        file, facts: the user's file and what is known from running it.
        judges: open ones, possibly shared with other optimizations.
        record: what earlier runs of the same found.
        proposers: take turns.
        clock: of the seconds, where several optimizations share them.
        on_change: told about the progress of the search.
        on_step: told what is begun, in words such as "comparing its gradients".
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
        clock: Clock | None = None,
        on_change: Callable[[Progress], None] = lambda progress: None,
        on_step: Callable[[str], None] = lambda step: None,
    ) -> None:
        self._file, self._facts, self._texts = file, facts, texts
        self._settings, self._judges, self._record = settings, judges, record
        self._clock = clock or Clock()
        self._on_step = on_step
        self._reads_forward = any(each.name in (REWRITES, COMPILER) for each in proposers)
        self._search = Search(
            self._judge_shown,
            proposers,
            budget=Budget(
                seconds=settings.seconds,
                candidates=settings.candidates,
                patience=settings.patience,
                screening_share=settings.screening_share,
            ),
            workers=settings.judge.workers,
            clock=self._clock,
            on_change=on_change,
        )
        self.outcome = Outcome(progress=self._search.progress)
        self._given_up = ""

    def run(self) -> Outcome:
        """Search until the budget is spent or `stop` is called, then make and judge the drop-ins, and the baselines.

        Raises:
            ProblemError: if the module cannot serve as the truth.
        """
        self.screen()
        self.make_drop_ins()
        return self.decide()

    @property
    def promise(self) -> float:
        """How many times as fast as the best so far the next candidate is hoped to be; 0.0 if there will be none."""
        return self._search.promise

    def screen(self, *, more: int | None = None) -> None:
        """Screen what is proposed, or so many more of it; may be called again."""
        self._on_step("screening candidates")
        self._search.screen(more=more)

    def make_drop_ins(self) -> None:
        """Look at the fastest again, and judge what would be written for the best: the whole file, guards included."""
        if len(contenders(self._search.progress.at(SCREEN))) > 1:
            self._on_step("looking at the fastest again")
        self._search.look_again(keep=NUM_AGAIN)
        self._judge_drop_ins()

    def decide(self) -> Outcome:
        """Which drop-in wins, if any: the best that is faster than every baseline for sure.

        Baselines are judged only now: compiling takes as long as many candidates do, and matters to a leader alone.
        """
        outcome, settings = self.outcome, self._settings
        if not outcome.progress.scored:
            self._judged_baseline("eager", SCREEN)  # whether the module can serve as the truth at all
        finals = sorted(outcome.finals, key=lambda pair: _interval(pair[1]).low, reverse=True)
        self._time_baselines(_interval(finals[0][1]).low if finals else 0.0)
        faster = [pair for pair in finals if self._is_faster(pair[1])]
        winner = self._undoubted(faster) if settings.window_s else next(iter(faster), None)
        if winner is not None and (not settings.proves_all or self._has_right_gradients(winner[0])):
            outcome.winner = winner
        elif faster:
            outcome.unwritten = self._why_unwritten((winner or faster[0])[1])
        else:
            outcome.unwritten = self._given_up or self._why_none_is_faster()
        outcome.interrupted = self._search.is_stopped
        outcome.seconds = self._clock.elapsed_s
        return outcome

    def stop(self) -> None:
        """Search no further; what was found until now is looked at as usual."""
        self._search.stop()

    @property
    def _is_time_over(self) -> bool:
        return self._clock.elapsed_s >= self._settings.seconds

    def _time_baselines(self, surely: float) -> None:
        """Time the ways of running the reference, as long as that can change what is written.

        Args:
            surely: how many times as fast as eager the best drop-in is at least.
        """
        outcome, settings = self.outcome, self._settings
        asked = usable_baselines(settings.judge.device, settings.baselines)
        left_out = (name for name in usable_baselines(settings.judge.device) if name not in (*asked, "eager"))
        outcome.not_judged |= dict.fromkeys(left_out, "`--baselines` leaves it out")
        for name in asked:
            best_name, best = outcome.baseline
            if name == "eager":
                continue  # what all speedups are over
            judged: Scored | str = f"nothing was found that is faster than {best_name} for sure"
            if surely > best.high:
                judged = self._judged_baseline(name, FINAL)
            if isinstance(judged, str):
                outcome.not_judged[name] = judged
            else:
                outcome.baselines.append(judged)

    def _judged_baseline(self, name: str, rung: str) -> Scored | str:
        """The baseline, or why it is not judged."""
        candidate = baseline_candidate(self._texts.judged, name)
        is_known = (rung, candidate.candidate_id) in self._record.known
        if not is_known and self._is_time_over and not self._settings.proves_all:
            return NO_TIME
        verdict = self._judge(self._texts.judged, candidate, rung, step=f"timing the baseline {name}")
        if verdict.status is Status.UNSTABLE:
            return "its times did not settle"
        return Scored(candidate=candidate, verdict=verdict, rung=rung)

    def _judge_drop_ins(self) -> None:
        progress, finals = self._search.progress, self.outcome.finals
        for scored in ranked(progress.at(AGAIN)) or ranked(progress.at(SCREEN))[:NUM_AGAIN]:
            surely = max((_interval(final).low for _, final in finals), default=1.0)
            if len(finals) == NUM_FINAL or (scored.speedup or 0.0) <= 1.0 or _interval(scored).high < surely:
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
                self._note_given_up(scored, f"no drop-in can be made of it: {one_line(str(error))}")
                continue
            step = f"judging the drop-in of {written_by(scored.candidate)}"
            verdict = self._judge(self._texts.judged, self._texts.as_judged(made.judged), FINAL, step=step)
            final = Scored(candidate=made.judged, verdict=verdict, rung=FINAL)
            progress.scored.append(final)
            if verdict.status is Status.UNSTABLE:
                reason = f"the timing of its drop-in did not settle: {one_line(verdict.detail)}"
                self._note_given_up(
                    scored,
                    reason,
                    remedy="; repeat the command, which judges that again, on a quieter machine if you can",
                )
                continue
            if not verdict.is_correct:
                self._note_given_up(scored, f"its drop-in was refused: {found_in_words(verdict)}")
                continue
            if _interval(final).low <= ABOUT_EVEN and self._has_given_up(made, scored):
                continue
            if not self._settings.proves_all or self._has_right_effects(made, scored):
                finals.append((made, final))

    def _has_given_up(self, made: DropIn, scored: Scored) -> bool:
        """Whether a drop-in runs the reference, which noise may make look faster than itself; notes why."""
        step = "looking whether it gave its fast code up"
        verdict = self._judge(self._texts.judged, self._texts.as_judged(telling(made.judged)), SCREEN, step=step)
        reason = reason_in(verdict)
        if reason is None:
            return False
        self._note_given_up(scored, f"its drop-in gives that up and runs your own forward: {reason}")
        return True

    def _note_given_up(self, scored: Scored, reason: str, *, remedy: str = "") -> None:
        words = f"a candidate was judged {in_words(_interval(scored))} over eager, but {reason}"
        self._given_up = self._given_up or words + remedy  # of several the fastest, which comes first
        self._search.progress.failed[scored.candidate.candidate_id] = words

    def _undoubted(self, faster: Sequence[tuple[DropIn, Scored]]) -> tuple[DropIn, Scored] | None:
        """The first that the long tier proves faster, with its number; else the first that it does not doubt.

        A long timing that does not settle is no doubt where every bucket of it beats the best baseline; what is
        claimed then is for Outcome.speedup to say. Others are timed as long as there is time.
        """
        undoubted = None
        for made, final in faster:
            if undoubted is not None and self._is_time_over:
                break
            candidate = self._texts.as_judged(made.judged)
            step = f"timing the drop-in in a window of {self._settings.window_s:g} s, besides checking and compiling it"
            verdict = self._judge(self._texts.judged, candidate, LONG, step=step)
            longer = Scored(candidate=candidate, verdict=verdict, rung=LONG)
            self.outcome.progress.scored.append(longer)
            if self._is_faster(longer):
                return made, longer
            if undoubted is None and self._is_faster_throughout(longer.verdict):
                undoubted = made, final
        return undoubted

    def _why_unwritten(self, faster: Scored) -> str:
        """What is the matter with a drop-in that was judged faster, and what can be done."""
        found = f"a drop-in was judged {in_words(_interval(faster))} over eager"
        verdict = self.outcome.gradients or self.outcome.long_verdict_on(faster)
        assert verdict is not None
        words = found_in_words(verdict)
        if self.outcome.gradients is not None:
            return f"{found}, but its gradients are not those of the original: {words}"
        remedy = "; repeat it on a quieter machine, or leave the long timing out with --window-s 0"
        return f"{found}, but its long timing came to {words}{remedy if verdict.status is Status.UNSTABLE else ''}"

    def _why_none_is_faster(self) -> str:
        """What kept candidates from a drop-in that is faster; empty where they were not faster themselves."""
        progress, (name, best) = self.outcome.progress, self.outcome.baseline
        screened = [each.verdict for each in progress.at(SCREEN)]
        if not screened:
            return self._why_none_was_judged()
        if not any(verdict.is_correct for verdict in screened):
            return _none_is_right(screened)
        for _, final in self.outcome.finals:
            made_of = proposed_as(final, ranked(progress.scored))
            if made_of is not None and self._is_faster(made_of):
                beaten = f", and the best baseline, {name}, {in_words(best)}" if name != "eager" else ""
                words = f"its drop-in {found_in_words(final.verdict)}{beaten}"
                return f"a candidate was judged {in_words(_interval(made_of))} over eager, but {words}"
        return ""

    def _why_none_was_judged(self) -> str:
        if self._search.is_stopped or self._settings.candidates == 0:
            return "no candidate was judged"
        words, name = "no candidate was judged, since none was proposed", self._file.class_name
        if self._reads_forward and (owner := hidden_forward(self._file.source, name)):
            return (
                f"{words}: rewrites change the forward in the text of {name}, and cannot tell from the file that "
                f"{owner}'s would do the same in {name}; add one with its steps to {name}"
            )
        return words

    def _is_faster(self, scored: Scored) -> bool:
        return scored.interval is not None and scored.interval.low > self.outcome.baseline[1].high

    def _is_faster_throughout(self, verdict: Verdict) -> bool:
        means = told_bucket_means(verdict) if verdict.status is Status.UNSTABLE else []
        return bool(means) and min(means) > self.outcome.baseline[1].high

    def _has_right_effects(self, made: DropIn, scored: Scored) -> bool:
        """Whether a call returns what it returns in the same containers, and leaves buffers and attributes as it did.

        Taken to be so where that cannot be compared, which the report says.
        """
        step = "comparing what its calls return and leave behind"
        verdict = self._judge(*effects_case(self._file, self._texts, made), EFFECTS, step=step)
        if verdict.status in (Status.CORRECT, Status.UNSTABLE):
            return True
        if verdict.status in (Status.BAD_PROBLEM, Status.TIMEOUT):
            words = f"containers of outputs, buffers and attributes could not be compared: {one_line(verdict.detail)}"
            self.outcome.progress.failed[f"{scored.candidate.candidate_id[:8]} as a drop-in"] = words
            return True
        words = "its drop-in returns other containers, or leaves other buffers or attributes than the original"
        self._note_given_up(scored, f"{words}: {one_line(verdict.detail)}")
        return False

    def _has_right_gradients(self, made: DropIn) -> bool:
        problem, candidate = gradient_case(self._texts, made)
        self.outcome.gradients = verdict = self._judge(problem, candidate, GRADIENTS, step="comparing its gradients")
        if verdict.status not in GRADIENTS_IN_WORDS:
            self.outcome.progress.failed["gradients"] = f"{verdict.status}: {verdict.detail}"
        return verdict.status in GRADIENTS_IN_WORDS

    def _judge_shown(self, candidate: Candidate, rung: str, best: float | None) -> Verdict:
        return self._judge(self._texts.judged, self._texts.as_judged(candidate), rung, best_speedup=best)

    def _judge(
        self, problem: Problem, candidate: Candidate, rung: str, *, best_speedup: float | None = None, step: str = ""
    ) -> Verdict:
        if (rung, candidate.candidate_id) in self._record.known:
            verdict, elapsed_s = self._record.known[rung, candidate.candidate_id]
            self._clock.advance(elapsed_s)
            return verdict
        if step:
            self._on_step(step)
        judge = self._judges.at(rung)
        for left in reversed(range(NOISY_TRIES)):
            try:
                verdict = judge.judge(problem, candidate, seed=self._settings.seed, best_speedup=best_speedup)
            except RetryableError:
                if not left:
                    raise
                continue
            if not self._may_be_noise(verdict, rung) or (rung == LONG and self._is_time_over):
                break
        if verdict.status is Status.BAD_PROBLEM and problem is self._texts.judged:
            raise ProblemError(f"{self._file.class_name} cannot be judged: {verdict.detail}")
        self._record.add(rung, verdict, elapsed_s=self._clock.elapsed_s)
        return verdict

    def _may_be_noise(self, verdict: Verdict, rung: str) -> bool:
        """Whether other work on the machine may be why it is not faster: it makes times vary, and calls uneven."""
        if verdict.timing is None or rung not in AFRESH:
            return verdict.status is Status.UNSTABLE
        return bool(charges(verdict)) and verdict.timing.speedup.low <= self.outcome.baseline[1].high


def _none_is_right(screened: Sequence[Verdict]) -> str:
    """That no candidate is known to be right, with what is the matter with the first that is wrong."""
    refused = [verdict for verdict in screened if verdict.status is not Status.UNSTABLE]
    what = "refused" if len(refused) == len(screened) else "refused or did not settle"
    first = found_in_words((refused or screened)[0])
    if len(screened) == 1:
        return f"the only candidate was {what}: {first}"
    return f"all {len(screened)} candidates were {what}, the first: {first}"


def _interval(scored: Scored) -> Speedup:
    assert scored.interval is not None
    return scored.interval
