"""The timing protocol: what is measured, in what order, and the number it is reduced to.

Bump PROTOCOL whenever a change here, in the equality rule or in the order of the checks can move a number or a status;
verdicts of different protocols are never compared.
"""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

PROTOCOL = "paired-1"

SHORT_CALL_MS = 1.0
MAX_CALLS = 4
MIN_ROUNDS = 5
RESOLUTION_MS = 0.005
MAX_SPREAD = 0.25


@dataclass(frozen=True, kw_only=True, slots=True)
class Rounds:
    """Paired times in ms: entry i of one was taken right beside entry i of the other."""

    reference_ms: tuple[float, ...]
    candidate_ms: tuple[float, ...]

    @property
    def spread(self) -> float:
        """Distance of the quartiles of the per-round ratios, as a share of their median.

        >>> Rounds(reference_ms=(2.0,) * 5, candidate_ms=(1.0,) * 5).spread
        0.0
        """
        ratios = [r / c for r, c in zip(self.reference_ms, self.candidate_ms, strict=True)]
        low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return (high - low) / median

    @property
    def is_settled(self) -> bool:
        return self.spread <= MAX_SPREAD


def measure_rounds(
    reference: Callable[[int], float], candidate: Callable[[int], float], *, rounds: int, calls: int, rng: random.Random
) -> Rounds:
    """Time both programs side by side, in random order within each round.

    Pairing cancels slow drift; the random order keeps either program from always running on the other's warm cache. A
    round of several calls counts as their mean, so that programs far below a millisecond are measured over one.

    Args:
        reference: runs the reference once, on the inputs of the given number, and returns its time in ms.
        candidate: the same for the candidate.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        sums = [0.0, 0.0]
        for call in range(calls):
            order = [(0, reference), (1, candidate)]
            rng.shuffle(order)
            for side, run in order:
                sums[side] += run(number * calls + call)
        for side in (0, 1):
            times[side].append(sums[side] / calls)
    return Rounds(reference_ms=tuple(times[0]), candidate_ms=tuple(times[1]))


def calls_per_round(faster_ms: float) -> int:
    """How many calls make one round: more than one only for programs below a millisecond.

    >>> calls_per_round(5.0), calls_per_round(0.4), calls_per_round(0.01)
    (1, 3, 4)
    """
    return max(1, min(MAX_CALLS, -int(-SHORT_CALL_MS // max(faster_ms, RESOLUTION_MS))))


def affordable_rounds(rounds: int, *, round_ms: float, budget_s: float) -> int:
    """As many rounds as asked for, or fewer where they would take longer than the budget, but never too few.

    >>> affordable_rounds(9, round_ms=10.0, budget_s=3.0), affordable_rounds(9, round_ms=2_000.0, budget_s=3.0)
    (9, 5)
    """
    return max(MIN_ROUNDS, min(rounds, int(budget_s * 1e3 / max(round_ms, RESOLUTION_MS))))


def net_ms(measured_ms: float, exchange_ms: float) -> float:
    """The time of a call without what asking for it and copying its outputs takes anyway.

    The exchange is measured on the reference's worker, which no candidate can slow down. What is left is never taken
    below the resolution, nor below a tenth of what was subtracted.

    >>> net_ms(5.2, 0.2), net_ms(0.2, 0.2)
    (5.0, 0.02)
    """
    return max(measured_ms - exchange_ms, exchange_ms / 10, RESOLUTION_MS)


def exchange_ms(samples_ms: Sequence[float]) -> float:
    """The cost of an exchange in which nothing is computed: a low quantile, since noise only ever adds."""
    return statistics.quantiles(samples_ms, n=4, method="inclusive")[0]
