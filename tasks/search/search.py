"""One search: candidates are proposed and screened until the budget is spent, then the fastest are looked at again.

Successive halving: the screen is cheap and sees all, every later rung is dearer and sees a share of the one before. The
same judgements and answers in the same order give the same search; how they are made, kept and shown is the caller's.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from tasks.errors import ProviderError
from tasks.judge.verdict import Verdict
from tasks.search.clock import Clock
from tasks.search.found import Scored, contenders
from tasks.search.proposers import Proposer
from tasks.variants.candidate import Candidate

SCREEN, AGAIN = "screen", "again"
LOOK_S = 0.3
"""Where answers are waited for, the clock and Ctrl-C are looked at this often."""
BETTER = 1.03
"""A new best counts as progress from this factor on; less is noise."""

JudgeAt = Callable[[Candidate, str, float | None], Verdict]
"""Judges a candidate at a rung, given the best speedup known; waits for the verdict, from any thread."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """What a search may use; the first limit that is reached ends the screening."""

    seconds: float
    candidates: int | None = None
    patience: int | None = None
    """Candidates in a row that bring nothing better."""
    screening_share: float = 0.7
    """Of the seconds; the rest is for looking again."""


@dataclass(kw_only=True, slots=True)
class Progress:
    """How far a search is; what a caller shows, and what remains of one that was interrupted."""

    scored: list[Scored] = field(default_factory=list)
    running: list[Candidate] = field(default_factory=list)
    num_pending: int = 0
    """Answers that proposers wait for."""
    failed: dict[str, str] = field(default_factory=dict)
    """Proposers that gave up, with the reason."""

    def at(self, rung: str) -> list[Scored]:
        return [each for each in self.scored if each.rung == rung]


class Search:
    """Proposes, screens and ranks for one problem.

    Args:
        judge_at: as JudgeAt.
        proposers: take turns; the first ones first.
        workers: candidates judged at once.
        clock: of the seconds in the budget.
        on_change: told whenever the progress has changed.
    """

    def __init__(
        self,
        judge_at: JudgeAt,
        proposers: Sequence[Proposer],
        *,
        budget: Budget,
        workers: int,
        clock: Clock | None = None,
        on_change: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        self._judge_at = judge_at
        self._proposers = list(proposers)
        self._budget = budget
        self._workers = workers
        self._clock = clock or Clock()
        self._on_change = on_change
        self._since_better = 0
        self._most: int | None = None
        self.is_stopped = False
        self.progress = Progress()

    @property
    def promise(self) -> float:
        """How many times as fast as the best so far the next candidate is hoped to be; 0.0 if there will be none."""
        if self._is_spent:
            return 0.0
        found = self.progress.at(SCREEN)
        return max((each.hope(found) for each in self._proposers), default=0.0) / (self._best_speedup or 1.0)

    def stop(self) -> None:
        """Begin no more judgements; may be called from anywhere, a signal handler included."""
        self.is_stopped = True

    def screen(self, *, more: int | None = None) -> None:
        """Judge what is proposed until the budget is spent or nobody proposes anything more; may be called again.

        Args:
            more: ends it after so many candidates.
        """
        self._most = None if more is None else len(self.progress.at(SCREEN)) + more
        self._side_by_side(SCREEN, self._proposed, self._pending)
        self._most = None

    def look_again(self, *, keep: int) -> None:
        """Judge the fastest of the screen more exactly, if there are several that may be; no more is screened."""
        for proposer in self._proposers:
            proposer.close()
        best = contenders(self.progress.at(SCREEN))[:keep]
        waiting = [each.candidate for each in best] if len(best) > 1 else []
        self._side_by_side(AGAIN, lambda: waiting.pop(0) if waiting else None, lambda: [])

    @property
    def _is_spent(self) -> bool:
        budget, num_screened = self._budget, len(self.progress.at(SCREEN)) + len(self.progress.running)
        return (
            self._clock.elapsed_s > budget.screening_share * budget.seconds
            or any(most is not None and num_screened >= most for most in (budget.candidates, self._most))
            or (budget.patience is not None and self._since_better >= budget.patience)
        )

    def _pending(self) -> list[Future[Any]]:
        if self._is_spent:
            return []
        return [future for proposer in self._proposers for future in proposer.pending]

    def _proposed(self) -> Candidate | None:
        if self._is_spent:
            return None
        for proposer in list(self._proposers):
            try:
                candidate = proposer.propose(self.progress.at(SCREEN))
            except ProviderError as error:
                self.progress.failed[proposer.name] = str(error)
                self._proposers.remove(proposer)
                continue
            if candidate is not None:
                self._proposers.append(self._proposers.pop(self._proposers.index(proposer)))  # the others are next
                return candidate
        return None

    def _side_by_side(
        self, rung: str, next_candidate: Callable[[], Candidate | None], pending: Callable[[], list[Future[Any]]]
    ) -> None:
        """Keep all workers busy until there is no next candidate, none is pending and the last has its verdict."""
        running: dict[Future[Verdict], Candidate] = {}
        pool = ThreadPoolExecutor(self._workers, thread_name_prefix=rung)
        try:
            while True:
                while len(running) < self._workers and not self.is_stopped:
                    candidate = next_candidate()
                    if candidate is None:
                        break
                    running[pool.submit(self._judge_at, candidate, rung, self._best_speedup)] = candidate
                    self._show(running)
                # Only a free worker waits for answers: to a busy one they come too early.
                awaited = [] if self.is_stopped or len(running) == self._workers else pending()
                if not running and not awaited:
                    return
                self.progress.num_pending = len(awaited)
                done = wait([*running, *awaited], LOOK_S if awaited else None, FIRST_COMPLETED).done
                for future in [each for each in running if each in done]:
                    self._note(Scored(candidate=running.pop(future), verdict=future.result(), rung=rung))
                self._show(running)
        finally:
            # Not waiting: after an error the judge is closed next, which ends what is running.
            pool.shutdown(wait=False, cancel_futures=True)
            self.progress.running, self.progress.num_pending = [], 0

    @property
    def _best_speedup(self) -> float | None:
        return max((each.speedup for each in self.progress.scored if each.speedup), default=None)

    def _note(self, scored: Scored) -> None:
        best = self._best_speedup or 1.0
        self._since_better = 0 if (scored.speedup or 0.0) > BETTER * best else self._since_better + 1
        self.progress.scored.append(scored)

    def _show(self, running: dict[Future[Verdict], Candidate]) -> None:
        self.progress.running = list(running.values())
        self._on_change(self.progress)
