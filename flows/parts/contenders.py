"""Timing the fastest candidates of every problem again, until one of them is correct a second time."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from tasks.judge.verdict import Verdict
from tasks.variants.candidate import Candidate

CHANCES = 4
"""How often a problem's next ones come, where all before failed: it ends though a reference has become unusable."""


def fastest_first(texts: Mapping[str, Candidate], verdicts: Iterable[Verdict]) -> dict[str, list[Candidate]]:
    """The correct candidates of every problem that has any, by the best of their speedups so far.

    Args:
        texts: by candidate id; what is not among them cannot be timed again.
    """
    speedups: dict[str, dict[str, float]] = defaultdict(dict)
    for verdict in verdicts:
        if verdict.speedup is not None and verdict.candidate_id in texts:
            of_problem = speedups[verdict.problem_id]
            of_problem[verdict.candidate_id] = max(verdict.speedup, of_problem.get(verdict.candidate_id, 0.0))
    return {
        problem_id: [texts[name] for name in sorted(of_problem, key=lambda name: -of_problem[name])]
        for problem_id, of_problem in speedups.items()
    }


def time_again(
    waiting: Mapping[str, Sequence[Candidate]],
    judge: Callable[[Sequence[Candidate]], Sequence[Verdict]],
    *,
    at_once: int,
) -> tuple[list[Candidate], list[Verdict]]:
    """The candidates that were judged once more, and how they fared.

    What passed once may fail on other inputs; then the problem's next ones get their chance.

    Args:
        waiting: candidates of each problem, the fastest first.
        judge: gives a verdict for each candidate, in the order given.
        at_once: how many of each problem are compared with each other.
    """
    candidates: list[Candidate] = []
    verdicts: list[Verdict] = []
    for _ in range(CHANCES):
        if not (batch := [candidate for of_problem in waiting.values() for candidate in of_problem[:at_once]]):
            break
        found = judge(batch)
        candidates += batch
        verdicts += found
        solved = {verdict.problem_id for verdict in found if verdict.is_correct}
        waiting = {name: of_problem[at_once:] for name, of_problem in waiting.items() if name not in solved}
    return candidates, verdicts
