"""The long tier: the paper's way of timing, for the few candidates that matter.

A window of rounds is cut into buckets of equal length. The speedup is the median of the buckets' mean ratios, rounded
to two decimals towards 1; it counts only if the means vary little.

Source:
    CUDA-L1, arXiv 2507.14111, robust reward assignment.
"""

import math
import random
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tasks.judge.timing import SUPPORT, Round, Rounds
from tasks.judge.verdict import Speedup, Verdict, median_interval
from tasks.params import LongParams

KEPT_ROUNDS = 32
"""Of each bucket, chosen at random: a window has up to a million rounds, and a verdict is to stay small."""
REPORT_S = 1.0
BUCKET_MEANS = "bucket_means"
"""The check that the means of one look agree."""
_BUCKET_MEANS = re.compile(r"bucket means ([\d. ]+),")

OnProgress = Callable[[float, str], None]
"""Told, about once a second, the share of the window that has passed and what is known, in words. May raise to stop."""


@dataclass(kw_only=True, slots=True)
class Bucket:
    """Rounds of one part of the window: sums over all of them, and a few of them."""

    rng: random.Random
    num_rounds: int = 0
    kept: list[Round] = field(default_factory=list)
    _many_sum: float = 0.0
    _single_sum: float = 0.0

    def add(self, taken: Round) -> None:
        self.num_rounds += 1
        self._many_sum += _ratio(taken.many)
        self._single_sum += _ratio(taken.single or taken.many)
        if len(self.kept) < KEPT_ROUNDS:
            self.kept.append(taken)
        elif (place := self.rng.randrange(self.num_rounds)) < KEPT_ROUNDS:
            self.kept[place] = taken

    @property
    def many_mean(self) -> float:
        return self._many_sum / self.num_rounds

    @property
    def single_mean(self) -> float:
        return self._single_sum / self.num_rounds


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """What one window of rounds came to."""

    bucket_means: tuple[float, ...]
    num_rounds: int
    rounds: Rounds
    """Those that were kept."""

    @property
    def variance(self) -> float:
        """Of the bucket means."""
        return statistics.variance(self.bucket_means)

    @property
    def speedup(self) -> Speedup:
        low, high = median_interval(self.bucket_means)
        median = rounded_towards_one(statistics.median(self.bucket_means))
        return Speedup(median=median, low=min(low, median), high=max(high, median))

    @property
    def words(self) -> str:
        means = " ".join(f"{mean:.3f}" for mean in self.bucket_means)
        return f"bucket means {means}, variance {self.variance:.2g}, {self.num_rounds} rounds"


def told_bucket_means(verdict: Verdict) -> list[float]:
    """The bucket means that a verdict of the long tier tells of in its evidence, also where those of one look differ.

    None where two looks differ, or something else is wrong: then no number of them can be believed.
    """
    if any(not check.passed and check.name != BUCKET_MEANS for check in verdict.checks):
        return []
    told = [means for check in verdict.checks for means in _BUCKET_MEANS.findall(check.evidence)]
    return [float(mean) for means in told for mean in means.split()]


def measure_window(
    take_round: Callable[[], Round],
    params: LongParams,
    *,
    rng: random.Random,
    on_progress: OnProgress,
    clock: Callable[[], float] = time.monotonic,
) -> Window:
    """Take rounds for as long as the window lasts, at least one for each bucket.

    Args:
        rng: decides which rounds are kept.
        clock: in seconds.
    """
    started = reported = clock()
    buckets: list[Bucket] = []
    for number in range(1, params.buckets + 1):
        bucket = Bucket(rng=rng)
        buckets.append(bucket)
        ends_at = started + params.window_s * number / params.buckets
        while not bucket.num_rounds or clock() < ends_at:
            bucket.add(take_round())
            if clock() - reported >= REPORT_S:
                reported = clock()
                passed = min(1.0, (reported - started) / params.window_s)
                on_progress(passed, f"bucket {number} of {params.buckets}: {bucket.many_mean:.3f}x")
    return _settled(buckets)


def rounded_towards_one(speedup: float) -> float:
    """Two decimals, never in the candidate's favour, nor against a slow one.

    >>> rounded_towards_one(1.118), rounded_towards_one(0.992), rounded_towards_one(1.12)
    (1.11, 1.0, 1.12)
    """
    hundredths = round(speedup * 100, 6)  # 1.12 * 100 is a little more than 112
    return (math.floor(hundredths) if speedup > 1 else math.ceil(hundredths)) / 100


def _settled(buckets: Sequence[Bucket]) -> Window:
    """By many calls in an exchange where single calls support them; see timing.paid."""
    many = tuple(bucket.many_mean for bucket in buckets)
    single = tuple(bucket.single_mean for bucket in buckets)
    is_supported = statistics.median(many) <= SUPPORT * statistics.median(single)
    kept = [taken for bucket in buckets for taken in bucket.kept]
    return Window(
        bucket_means=many if is_supported else single,
        num_rounds=sum(bucket.num_rounds for bucket in buckets),
        rounds=Rounds.of([taken.many if is_supported else taken.single or taken.many for taken in kept]),
    )


def _ratio(times: tuple[float, float]) -> float:
    return times[0] / times[1]
