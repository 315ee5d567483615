"""What a search knows so far: every candidate with its verdict."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tasks.judge.verdict import Speedup, Verdict
from tasks.variants.candidate import Candidate


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """A candidate and what the judge said about it at one rung."""

    candidate: Candidate
    verdict: Verdict
    rung: str
    """Name of the rung that it was judged on: "screen", "again", "drop-in" or "long"."""

    @property
    def speedup(self) -> float | None:
        return self.verdict.speedup

    @property
    def interval(self) -> Speedup | None:
        """The speedup over eager with its interval, or None unless correct."""
        return self.verdict.timing.speedup if self.verdict.timing else None


def ranked(scored: Iterable[Scored]) -> list[Scored]:
    """The correct ones, fastest first; of one text only the last judgement counts."""
    latest = {each.candidate.candidate_id: each for each in scored}
    return sorted((each for each in latest.values() if each.speedup), key=lambda each: -(each.speedup or 0.0))


def contenders(scored: Iterable[Scored]) -> list[Scored]:
    """Those faster than eager that may be the fastest, as far as their intervals tell; the likeliest first."""
    faster = [(each, each.interval) for each in ranked(scored) if (each.speedup or 0.0) > 1.0]
    surely = max((interval.low for _, interval in faster if interval), default=1.0)
    return [each for each, interval in faster if interval and interval.high >= surely]


def best_baseline(baselines: Sequence[Scored]) -> tuple[str, Speedup]:
    """Name and speedup over eager of the fastest way of running the reference; eager itself where none is faster."""
    eager = ("eager", Speedup(median=1.0, low=1.0, high=1.0))
    others = [(each.candidate.origin.partition(":")[2], each.interval) for each in baselines if each.interval]
    return max([eager, *others], key=lambda pair: pair[1].median)


def surely_beaten(speedup: Speedup, baselines: Sequence[Scored]) -> list[str]:
    """Names of the ways of running the reference that this speedup is above for sure, eager first."""
    others = [(each.candidate.origin.partition(":")[2], each.interval) for each in baselines]
    names = [name for name, interval in others if interval is not None and interval.high < speedup.low]
    return ["eager", *names] if speedup.low > 1.0 else []


def over(speedup: Speedup, baseline: Speedup) -> Speedup:
    """A speedup over eager as one over another baseline, whose interval is as wide as both allow.

    >>> over(Speedup(median=3.0, low=2.0, high=4.0), Speedup(median=2.0, low=1.0, high=2.0)).low
    1.0
    """
    return Speedup(
        median=speedup.median / baseline.median, low=speedup.low / baseline.high, high=speedup.high / baseline.low
    )
