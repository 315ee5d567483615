"""Timing the baselines beside eager, and saying so where one is not to be had on this machine."""

import re
from collections.abc import Iterable, Mapping, Sequence

from flows.engine import say
from flows.parts.judging import Court
from tasks.judge.baselines import baseline_candidate
from tasks.judge.verdict import Verdict
from tasks.problems.problem import Problem


def time_baselines(names: Iterable[str], problems: Mapping[str, Problem], judges: Court) -> dict[str, dict[str, float]]:
    """Each baseline as a speedup over eager, for the problems on which it works."""
    verdicts: dict[str, Sequence[Verdict]] = {}
    for name in names:
        candidates = [baseline_candidate(problem, name) for problem in problems.values()]
        verdicts[name] = judges.judge(candidates, desc=f"timing baseline {name}")
    return baseline_speedups(verdicts)


def baseline_speedups(verdicts: Mapping[str, Sequence[Verdict]]) -> dict[str, dict[str, float]]:
    """By baseline and problem; one that works nowhere, such as compile without a C++ compiler, is told and left out."""
    speedups: dict[str, dict[str, float]] = {}
    for name, found in verdicts.items():
        works = {verdict.problem_id: verdict.speedup for verdict in found if verdict.speedup is not None}
        if works:
            speedups[name] = works
        elif found:
            say(f"warning: the baseline {name} is not available here, and left out: {_reason(found[0])}")
    return speedups


def _reason(verdict: Verdict) -> str:
    """The last error that is named in what a program said, or else how it ended."""
    errors = re.findall(r"^[\w.]+(?:Error|Exception): .*", verdict.detail, flags=re.MULTILINE)
    return errors[-1] if errors else verdict.status.value
