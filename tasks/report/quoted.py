"""The numbers of the field for one list of speedups, all together: what every table that quotes any is made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tasks.report import statistics
from tasks.report.statistics import Interval, Speedups
from tasks.report.tables import MISSING, share, speed, speed_with_interval

THRESHOLDS = (0, 1, 1.2, 2)
"""The p of fast_p."""
HEADER = (
    *("problems", "geomean", "mean", "25 %", "median", "75 %", "max"),
    *(f"fast_{threshold:g}" for threshold in THRESHOLDS),
)


class Missing(StrEnum):
    """What a problem without a correct kernel counts as."""

    REFERENCE = "as 1.00x"  # the reference, or the baseline, would be used instead
    LEFT_OUT = "left out"


@dataclass(frozen=True, kw_only=True, slots=True)
class Quoted:
    """What the speedups of some problems come to."""

    problems: int
    """That count; those without a correct kernel only where these count as 1.00x."""
    missing: int
    """Problems without a correct kernel, whether they count or not."""
    mean: float | None
    mean_interval: Interval | None
    geomean: float | None
    geomean_interval: Interval | None
    quartiles: tuple[float, float, float] | None
    median_interval: Interval | None
    maximum: float | None
    fast: Mapping[float, float]
    """By threshold, the share of the problems solved and more than so many times as fast as the baseline."""

    @property
    def cells(self) -> tuple[str, ...]:
        """As HEADER names them."""
        low, median, high = self.quartiles or (None, None, None)
        return (
            str(self.problems),
            speed_with_interval(self.geomean, self.geomean_interval),
            speed_with_interval(self.mean, self.mean_interval),
            speed(low),
            speed_with_interval(median, self.median_interval),
            speed(high),
            speed(self.maximum),
            *(share(value) if self.problems else MISSING for value in self.fast.values()),
        )


def quoted(speedups: Speedups, *, missing: Missing, resamples: int, seed: int) -> Quoted:
    """All numbers at once.

    Args:
        speedups: one entry per problem; None where it has no correct kernel. fast_p counts these as not solved.
        missing: whether they count as 1.00x in means and quartiles, or not at all.
        resamples, seed: of the bootstrap over problems behind the intervals.
    """
    kept = speedups if missing is Missing.REFERENCE else [one for one in speedups if one is not None]
    counted = statistics.or_reference(kept)
    bootstrap = {"resamples": resamples, "seed": seed}
    return Quoted(
        problems=len(counted),
        missing=sum(speedup is None for speedup in speedups),
        mean=statistics.mean(counted),
        mean_interval=statistics.mean_interval(counted, **bootstrap),
        geomean=statistics.geometric_mean(counted),
        geomean_interval=statistics.geometric_mean_interval(
            {str(index): [speedup] for index, speedup in enumerate(counted)}, **bootstrap
        ),
        quartiles=statistics.quartiles(counted),
        median_interval=statistics.median_interval(counted, **bootstrap),
        maximum=statistics.maximum(counted),
        fast={threshold: statistics.fast_p(kept, p=threshold) for threshold in THRESHOLDS},
    )
