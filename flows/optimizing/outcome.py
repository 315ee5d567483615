"""What a user chooses for an optimization, and what comes of it."""

import statistics
from dataclasses import dataclass, field, replace

from flows.optimizing.judging import LONG
from tasks.judge.long import told_bucket_means
from tasks.judge.verdict import Speedup, Verdict
from tasks.params import JudgeParams
from tasks.search.contributions import Contribution
from tasks.search.drop_in import DropIn
from tasks.search.found import Scored, best_baseline
from tasks.search.search import Progress
from tasks.search.writers import Asked

NO_TIME = "the time was over"
"""Why a baseline was not judged that might have mattered."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What a user chooses."""

    seconds: float
    """Of searching."""
    window_s: float
    """Of the long tier for the best drop-ins; 0 leaves it out."""
    judge: JudgeParams
    """What all rungs have in common: device, workers, limits."""
    screening_share: float = 0.7
    """Of the seconds; the rest is for looking again, and for drop-ins."""
    candidates: int | None = None
    patience: int | None = None
    seed: int = 0
    proves_all: bool = True
    """Whether all that proves a find is done: baselines are timed though the seconds are over, and gradients and what
    calls leave in the module are compared, not outputs alone."""
    baselines: tuple[str, ...] | None = None
    """Ways of running the reference that must be beaten; without them all that the device allows."""


@dataclass(kw_only=True, slots=True)
class Outcome:
    """What came of it."""

    progress: Progress
    baselines: list[Scored] = field(default_factory=list)
    not_judged: dict[str, str] = field(default_factory=dict)
    """Names of the baselines that were not, with the reason."""
    finals: list[tuple[DropIn, Scored]] = field(default_factory=list)
    winner: tuple[DropIn, Scored] | None = None
    """Only where its interval lies above that of the best baseline that was judged."""
    unwritten: str = ""
    """What stood between the candidates and a drop-in that is written, in words; empty where they were just slow."""
    no_drop_in: str = ""
    """Why the file gets none, whatever is found; empty where nothing is known."""
    gradients: Verdict | None = None
    asked: list[Asked] = field(default_factory=list)
    """Questions to language models and policies, with their answers."""
    contributions: list[Contribution] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0

    @property
    def speedup(self) -> Speedup | None:
        """What is claimed for the winner over eager.

        Where its long timing did not settle, the lesser of that and of the rung before, down to the least bucket.
        """
        if self.winner is None or self.unsettled is None:
            return self.winner[1].interval if self.winner else None
        means, before = told_bucket_means(self.unsettled), self.winner[1].interval
        long = Speedup(median=statistics.median(means), low=min(means), high=max(means))
        assert before is not None, "it is correct"
        lesser = min(before, long, key=lambda each: each.median)
        return replace(lesser, low=min(before.low, long.low))

    @property
    def unsettled(self) -> Verdict | None:
        """Of the long tier on the winner, where its timing did not settle."""
        return self.long_verdict_on(self.winner[1]) if self.winner and self.winner[1].rung != LONG else None

    def long_verdict_on(self, final: Scored) -> Verdict | None:
        """What the long tier said about a drop-in, if it was asked."""
        found = (each.verdict for each in self.progress.at(LONG))
        return next((each for each in found if each.candidate_id == final.verdict.candidate_id), None)

    @property
    def beaten_by_a_baseline(self) -> Speedup | None:
        """Of the best drop-in, over eager, where it is faster than that for sure and not than the best baseline."""
        found = [scored.interval for _, scored in self.finals if scored.interval is not None]
        best = max(found, key=lambda each: each.low, default=None)
        return best if best is not None and 1.0 < best.low <= self.baseline[1].high else None

    @property
    def baseline(self) -> tuple[str, Speedup]:
        return best_baseline(self.baselines)
