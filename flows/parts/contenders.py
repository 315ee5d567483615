"""Timing the fastest candidates of every problem again, until one of them is correct a second time."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from tasks.judge.verdict import Verdict
from tasks.variants.candidate import Candidate

ROUNDS = 4
"""How often candidates of a problem are timed again, the fastest included, before it has no best kernel."""


def fastest_first(texts: Mapping[str, Candidate], verdicts: Iterable[Verdict]) -> dict[str, list[Candidate]]:
    """The candidates of every problem whose last verdict is correct, by the speedup of that.

    The last one is the freshest: an earlier one got the candidate taught, shown or rewarded, so it was, likely, lucky.

    Args:
        texts: by candidate id; what is not among them cannot be timed again.
        verdicts: in the order in which they were given.
    """
    last = {verdict.candidate_id: verdict for verdict in verdicts if verdict.candidate_id in texts}
    speedups: dict[str, dict[str, float]] = defaultdict(dict)
    for verdict in last.values():
        if verdict.speedup is not None:
            speedups[verdict.problem_id][verdict.candidate_id] = verdict.speedup
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
    for _ in range(ROUNDS):
        if not (batch := [candidate for of_problem in waiting.values() for candidate in of_problem[:at_once]]):
            break
        found = judge(batch)
        candidates += batch
        verdicts += found
        solved = {verdict.problem_id for verdict in found if verdict.is_correct}
        waiting = {name: of_problem[at_once:] for name, of_problem in waiting.items() if name not in solved}
    return candidates, verdicts
