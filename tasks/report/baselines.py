"""The baselines that speedups are quoted over, and what a speedup over eager is over each of them.

Candidates and baselines are each timed against eager, in paired rounds of their own; a candidate is compared with a
baseline by the ratio of the two speedups.
"""

import math
from collections.abc import Iterable, Mapping

from tasks.judge.verdict import Speedup

Baselines = Mapping[str, Mapping[str, float]]
"""Baseline name, such as "compile", to problem id to that baseline's own speedup over eager."""
TimedBaselines = Mapping[str, Mapping[str, Speedup]]
"""The same with intervals."""

BEST_BASELINE = "best"
"""Name of the fastest of eager and all other baselines, chosen for each problem apart."""
EAGER = "eager"
EVEN = Speedup(median=1.0, low=1.0, high=1.0)
"""Eager's own speedup, by definition."""


def with_best_baseline(baselines: Baselines, problem_ids: Iterable[str]) -> dict[str, dict[str, float]]:
    """The baselines other than eager and, when there are any, the fastest of all of them and eager for every problem.

    A baseline that failed on a problem lacks it; eager works on all of them.
    """
    named = {name: dict(speedups) for name, speedups in baselines.items() if name != EAGER}
    if named:
        best = {
            problem_id: max(1.0, *(speedups.get(problem_id, 1.0) for speedups in named.values()))
            for problem_id in problem_ids
        }
        named[BEST_BASELINE] = best
    return named


def best_baseline(baselines: TimedBaselines, problem_id: str) -> tuple[str, Speedup]:
    """Name and speedup over eager of the fastest way to run one problem's reference, eager included."""
    timed = {name: speedups[problem_id] for name, speedups in baselines.items() if problem_id in speedups}
    found = {**timed, EAGER: EVEN}
    name = max(found, key=lambda name: found[name].median)
    return name, found[name]


def over(candidate: Speedup, baseline: Speedup) -> Speedup:
    """The candidate's speedup over a baseline, both given over eager, and a 90 % interval of it.

    The interval follows from the two intervals by propagation in log space, where a ratio is a difference and each
    side keeps its own width (the square-and-add method). That the fastest of several baselines was chosen by the same
    timings is not in it.

    >>> found = over(Speedup(median=3.0, low=2.7, high=3.3), Speedup(median=1.5, low=1.35, high=1.65))
    >>> round(found.median, 2), round(found.low, 2), round(found.high, 2)
    (2.0, 1.74, 2.31)

    Source:
        Zou and Donner, Construction of confidence limits about effect measures (2008).
    """
    ratio = candidate.median / baseline.median
    down = math.hypot(math.log(candidate.median / candidate.low), math.log(baseline.high / baseline.median))
    up = math.hypot(math.log(candidate.high / candidate.median), math.log(baseline.median / baseline.low))
    return Speedup(median=ratio, low=ratio * math.exp(-down), high=ratio * math.exp(up))
