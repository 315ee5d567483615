"""The timing protocol: what is measured, in what order, and the number it is reduced to.

Bump PROTOCOL whenever a change here, in the equality rule or in the order of the checks can move a number or a status;
verdicts of different protocols are never compared.
"""

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

PROTOCOL = "paired-1"

SHORT_CALL_MS = 1.0
MIN_CALLS, MAX_CALLS = 2, 8
MIN_ROUNDS = 5
RESOLUTION_MS = 0.005

MAX_BATCHES = 3
SETTLED_ERROR = 0.04
"""More rounds are taken until the standard error is at most this."""
UNSTABLE_ERROR = 0.12
"""A speedup that is still less certain than this is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rounds:
    """Paired times in ms: entry i of one was taken right beside entry i of the other."""

    reference_ms: tuple[float, ...]
    candidate_ms: tuple[float, ...]

    def __add__(self, other: "Rounds") -> "Rounds":
        return Rounds(
            reference_ms=self.reference_ms + other.reference_ms, candidate_ms=self.candidate_ms + other.candidate_ms
        )

    @property
    def standard_error(self) -> float:
        """How far the median of the per-round ratios is likely off, as a share of it.

        From the quartiles, which stray rounds do not move: 0.93 times their distance is the standard error of a median
        of one, if the ratios are spread like a bell.

        >>> Rounds(reference_ms=(2.0,) * 5, candidate_ms=(1.0,) * 5).standard_error
        0.0
        """
        ratios = [r / c for r, c in zip(self.reference_ms, self.candidate_ms, strict=True)]
        low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return 0.93 * (high - low) / median / math.sqrt(len(ratios))


def measure_until_settled(
    pair: Callable[[bool], tuple[float, float]], *, rounds: int, calls: int, rng: random.Random
) -> Rounds:
    """Time both programs side by side, in random order within each pair, until their ratio is known well enough.

    Pairing cancels slow drift; the random order keeps either program from always running on the other's warm cache. Of
    the calls of a round the quickest counts: whatever disturbs a call makes it slower, and since every call has inputs
    of its own and its outputs are checked, no call is quick without having done the work.

    Args:
        pair: runs both programs once on inputs that neither has seen, the reference first if its argument is true, and
            returns the reference's and the candidate's ms.
        rounds: pairs of one batch; where they do not settle, up to MAX_BATCHES are taken.
    """
    taken = _measure(pair, rounds, calls, rng)
    for _ in range(1, MAX_BATCHES):
        if taken.standard_error <= SETTLED_ERROR:
            break
        taken += _measure(pair, rounds, calls, rng)
    return taken


def calls_per_round(call_ms: float) -> int:
    """How many calls of either program make one round: more for short ones, which are disturbed more easily.

    >>> calls_per_round(5.0), calls_per_round(0.4), calls_per_round(0.01)
    (2, 3, 8)
    """
    return max(MIN_CALLS, min(MAX_CALLS, math.ceil(SHORT_CALL_MS / max(call_ms, RESOLUTION_MS))))


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


def _measure(pair: Callable[[bool], tuple[float, float]], rounds: int, calls: int, rng: random.Random) -> Rounds:
    reference_ms, candidate_ms = [], []
    for _ in range(rounds):
        times = [pair(rng.random() < 0.5) for _ in range(calls)]
        reference_ms.append(min(time for time, _ in times))
        candidate_ms.append(min(time for _, time in times))
    return Rounds(reference_ms=tuple(reference_ms), candidate_ms=tuple(candidate_ms))
