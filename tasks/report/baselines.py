"""The baselines that speedups are quoted over besides eager."""

from collections.abc import Iterable, Mapping

Baselines = Mapping[str, Mapping[str, float]]
"""Baseline name, such as "compile", to problem id to that baseline's own speedup over eager."""

BEST_BASELINE = "best"
"""Name of the fastest of eager and all other baselines, chosen for each problem apart."""


def with_best_baseline(baselines: Baselines, problem_ids: Iterable[str]) -> dict[str, dict[str, float]]:
    """The baselines other than eager and, when there are any, the fastest of all of them and eager for every problem.

    A baseline that failed on a problem lacks it; eager works on all of them.
    """
    named = {name: dict(speedups) for name, speedups in baselines.items() if name != "eager"}
    if named:
        best = {
            problem_id: max(1.0, *(speedups.get(problem_id, 1.0) for speedups in named.values()))
            for problem_id in problem_ids
        }
        named[BEST_BASELINE] = best
    return named
