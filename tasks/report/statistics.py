"""The numbers of the field, each a pure function of speedups.

None stands for a problem without a correct candidate. Every function but fast_p leaves it out; to count it as the
reference that would be used in its place, pass the speedups through or_reference first, and say so beside the number.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

CONFIDENCE = 0.95
"""Of every interval here."""

Speedups = Sequence[float | None]
"""One entry per problem or sample; None where nothing was correct."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """Where a number would lie, with CONFIDENCE, had other problems of the same kind been drawn."""

    low: float
    high: float


def or_reference(speedups: Speedups) -> list[float]:
    """The speedups with 1.0 for each None: whoever has no correct candidate runs the reference itself.

    A candidate slower than the reference keeps its speedup below 1: it was the answer given.
    """
    return [1.0 if speedup is None else speedup for speedup in speedups]


def mean(speedups: Speedups) -> float | None:
    """The arithmetic mean, which one huge speedup can carry; None when there are no speedups."""
    known = _known(speedups)
    return math.fsum(known) / len(known) if known else None


def geometric_mean(speedups: Speedups) -> float | None:
    """Mean in log space; None when there are no speedups.

    Ratios multiply, so 2x and 0.5x average to 1x. It hides failures: quote it next to the share that is correct.
    """
    known = _known(speedups)
    return math.exp(math.fsum(map(math.log, known)) / len(known)) if known else None


def median(speedups: Speedups) -> float | None:
    known = _known(speedups)
    return statistics.median(known) if known else None


def quartiles(speedups: Speedups) -> tuple[float, float, float] | None:
    """First quartile, median and third quartile, interpolated; None when there are no speedups."""
    known = _known(speedups)
    if len(known) < 2:
        return (known[0], known[0], known[0]) if known else None
    first, second, third = statistics.quantiles(known, n=4, method="inclusive")
    return first, second, third


def maximum(speedups: Speedups) -> float | None:
    return max(_known(speedups), default=None)


def fast_p(speedups: Speedups, *, p: float) -> float:
    """Share of all problems solved correctly and more than p times as fast as the baseline.

    Args:
        speedups: one entry per problem; None counts as not solved.
        p: threshold; fast_0 is the share of problems solved, fast_1 the share that beat the baseline.

    Returns:
        In [0, 1]; 0 when there are no problems.

    Source: KernelBench (arXiv:2502.10517).
    """
    return sum(speedup is not None and speedup > p for speedup in speedups) / max(len(speedups), 1)


def share_interval(successes: Sequence[int], totals: Sequence[int], *, resamples: int, seed: int) -> Interval | None:
    """Interval of sum(successes) / sum(totals) by resampling problems.

    Problems are drawn, not samples: the samples of one problem succeed and fail together, so drawing them one by one
    would pretend to know far more than was seen.

    Args:
        successes: one entry per problem, the number of its samples that succeeded.
        totals: one entry per problem, the number of its samples.
        resamples: bootstrap draws.
        seed: equal seeds give equal intervals.

    Returns:
        The percentile bootstrap's interval; None for fewer than two problems, which show no spread.
    """
    if len(totals) < 2:
        return None
    drawn = _draws(len(totals), resamples=resamples, seed=seed)
    return _percentiles(_ratios(successes, totals, drawn))


def geometric_mean_interval(
    speedups_by_problem: Mapping[str, Speedups], *, resamples: int, seed: int
) -> Interval | None:
    """Interval of the geometric mean of all speedups by resampling problems, as share_interval does.

    Args:
        speedups_by_problem: the speedups of each problem's samples; a problem without any is drawn like the others.
        resamples: bootstrap draws; those that hold no speedup are left out.
        seed: equal seeds give equal intervals.

    Returns:
        None when fewer than two problems have a speedup.
    """
    sums, counts = _log_sums(speedups_by_problem, speedups_by_problem)
    if sum(count > 0 for count in counts) < 2:
        return None
    import numpy as np

    drawn = _draws(len(counts), resamples=resamples, seed=seed)
    return _percentiles(np.exp(_ratios(sums, counts, drawn)))


def mean_interval(speedups: Speedups, *, resamples: int, seed: int) -> Interval | None:
    """Interval of mean by resampling problems; None for fewer than two speedups."""
    return _drawn_interval(speedups, "mean", resamples=resamples, seed=seed)


def median_interval(speedups: Speedups, *, resamples: int, seed: int) -> Interval | None:
    """Interval of median by resampling problems; None for fewer than two speedups."""
    return _drawn_interval(speedups, "median", resamples=resamples, seed=seed)


def geometric_mean_ratio(earlier: Mapping[str, Speedups], later: Mapping[str, Speedups]) -> float | None:
    """Geometric mean of the later stage's speedups / that of the earlier; None when either has none.

    A difference in log space is a ratio: 1.2 says that the later stage's kernels are 1.2 times as fast. Each stage is
    averaged over what it got right, so a stage that newly solves problems of small speedup is pulled down by them.
    """
    means = [geometric_mean([s for speedups in stage.values() for s in speedups]) for stage in (earlier, later)]
    return None if means[0] is None or means[1] is None else means[1] / means[0]


def geometric_mean_ratio_interval(
    earlier: Mapping[str, Speedups], later: Mapping[str, Speedups], *, resamples: int, seed: int
) -> Interval | None:
    """Interval of geometric_mean_ratio by a paired bootstrap: every draw gives both stages the same problems.

    Pairing removes what makes one problem easier to speed up than another, which both stages share. An interval that
    excludes 1 says that the stages differ.

    Returns:
        None when fewer than two problems have a speedup in either stage.
    """
    problems = sorted({*earlier, *later})
    stages = [_log_sums(stage, problems) for stage in (earlier, later)]
    if any(sum(count > 0 for count in counts) < 2 for _, counts in stages):
        return None
    import numpy as np

    drawn = _draws(len(problems), resamples=resamples, seed=seed)
    logs_earlier, logs_later = (_ratios(sums, counts, drawn) for sums, counts in stages)
    return _percentiles(np.exp(logs_later - logs_earlier))


def _known(speedups: Speedups) -> list[float]:
    return [speedup for speedup in speedups if speedup is not None]


def _drawn_interval(speedups: Speedups, number: str, *, resamples: int, seed: int) -> Interval | None:
    """Interval of what one of numpy's functions makes of the speedups."""
    known = _known(speedups)
    if len(known) < 2:
        return None
    import numpy as np

    drawn = np.asarray(known)[_draws(len(known), resamples=resamples, seed=seed)]
    return _percentiles(getattr(np, number)(drawn, axis=1))


def _log_sums(stage: Mapping[str, Speedups], problems: Iterable[str]) -> tuple[list[float], list[int]]:
    """Per problem, the sum of its log speedups and their number."""
    known = [_known(stage.get(problem, ())) for problem in problems]
    return [math.fsum(map(math.log, speedups)) for speedups in known], [len(speedups) for speedups in known]


def _draws(problems: int, *, resamples: int, seed: int) -> "np.ndarray[Any, Any]":
    """Indices of the problems of each resample [resamples, problems]."""
    import numpy as np

    return np.random.default_rng(seed).integers(problems, size=(resamples, problems))


def _ratios(
    numerators: Sequence[float], denominators: Sequence[int], drawn: "np.ndarray[Any, Any]"
) -> "np.ndarray[Any, Any]":
    """Sum of numerators / sum of denominators of each resample [resamples]; nan where there is nothing to divide by."""
    import numpy as np

    totals = np.asarray(denominators, dtype=float)[drawn].sum(axis=1)
    totals[totals == 0] = np.nan
    return np.asarray(np.asarray(numerators, dtype=float)[drawn].sum(axis=1) / totals)


def _percentiles(values: "np.ndarray[Any, Any]") -> Interval | None:
    import numpy as np

    usable = values[~np.isnan(values)]
    if not usable.size:
        return None
    low, high = np.quantile(usable, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(low=float(low), high=float(high))
