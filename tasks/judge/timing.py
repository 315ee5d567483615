"""The timing protocol: how many calls are timed, and the number that they are reduced to. No clock is read here.

Bump PROTOCOLS whenever a change here, in the equality rule or in the order of the checks can move a number, or a status
to or from `correct`; verdicts of different protocols are never compared.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

PROTOCOLS = {"cpu": "paired-14", "cuda": "paired-14"}
"""By kind of device. On a device calls are timed in another way, which changes at other times."""
LONG = "long"

MAX_CALLS = 32
MIN_EXCHANGES, MAX_EXCHANGES = 2, 8
MIN_ROUNDS = 5
RESOLUTION_MS = 0.001
SHORT_CALL_MS, EXCHANGE_MS = 0.3, 1.0
"""Calls shorter than the first share an exchange of about the second, which costs tens of microseconds itself."""
SINGLES = 8
INPUTS_BYTES = 32 << 20
"""New inputs for one session; drawing them takes longer than short calls do."""

MAX_BATCHES = 6
JOINED = (1, 2, 4)
LEAST_JOINED = 9
SETTLED_ERROR = 0.02
"""More rounds are taken until the standard error is at most this."""
UNSTABLE_ERROR = 0.12
"""A speedup that is still less certain than this is none."""
PATIENCE = 1.5
"""Times as long as the reference takes to be stopped after an answer costs nothing."""
SUPPORT = 1.05
"""How much faster than in single calls a candidate may be paid for being when several calls are asked for at once."""
STALLED = 10.0
"""No more of a slow exchange counts than this multiple of the quickest of its round."""
SURELY_LARGE = 20.0
"""From here on a call takes next to nothing beside the reference's, and fresh processes may differ by any factor."""
UNEVEN, SURE_ERRORS = 0.15, 2.5
"""By how much of the quickest a candidate's exchanges must take longer on average than the reference's do, and by how
many standard errors, to be charged for it."""


def protocol_of(*, device: str, tier: str) -> str:
    """The version of the way of judging.

    >>> protocol_of(device="cpu", tier="screen"), protocol_of(device="cuda:0", tier="long")
    ('paired-14', 'paired-14-long')

    Args:
        device: "cpu", or one of CUDA's or all.
        tier: "screen" or "long".
    """
    protocol = PROTOCOLS[device.partition(":")[0]]
    return f"{protocol}-{LONG}" if tier == LONG else protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How the calls of one session are put together."""

    calls: int
    """In one exchange."""
    exchanges: int
    """Of either program in one round; the quickest counts."""
    singles: int
    """Exchanges of a single call in one round besides; none where all are."""
    rounds: int
    """Of one batch."""

    @property
    def calls_per_round(self) -> int:
        return self.calls * self.exchanges + self.singles


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """What a call took in ms, of the reference and of the candidate, taken side by side."""

    many: tuple[float, float]
    """Several calls in an exchange, or one where calls are long."""
    single: tuple[float, float] | None = None
    """One call in an exchange, where many are several."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rounds:
    """Paired times in ms: entry i of one was taken right beside entry i of the other."""

    reference_ms: tuple[float, ...]
    candidate_ms: tuple[float, ...]

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, float]]) -> "Rounds":
        return cls(reference_ms=tuple(pair[0] for pair in pairs), candidate_ms=tuple(pair[1] for pair in pairs))

    def joined(self, count: int) -> "Rounds":
        """So many rounds in a row made one, of which the quickest times count.

        >>> Rounds(reference_ms=(2.0, 9.0, 3.0), candidate_ms=(1.0, 1.5, 1.0)).joined(2)
        Rounds(reference_ms=(2.0,), candidate_ms=(1.0,))
        """
        starts = range(0, len(self.reference_ms) - count + 1, count)
        return Rounds(
            reference_ms=tuple(min(self.reference_ms[at : at + count]) for at in starts),
            candidate_ms=tuple(min(self.candidate_ms[at : at + count]) for at in starts),
        )

    @property
    def steadiest(self) -> "Rounds":
        """The rounds, or fewer and longer ones where disturbances are so frequent that these tell more."""
        counts = [count for count in JOINED if count == 1 or len(self.reference_ms) // count >= LEAST_JOINED]
        return min((self.joined(count) for count in counts), key=lambda rounds: rounds.standard_error)

    @property
    def both(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return self.reference_ms, self.candidate_ms

    @property
    def ratios(self) -> list[float]:
        return [r / c for r, c in zip(self.reference_ms, self.candidate_ms, strict=True)]

    @property
    def speedup(self) -> float:
        return statistics.median(self.ratios)

    @property
    def standard_error(self) -> float:
        """How far the median of the per-round ratios is likely off, as a share of it.

        From the quartiles, which stray rounds do not move: 0.93 times their distance is the standard error of a median
        of one, if the ratios are spread like a bell.

        >>> Rounds(reference_ms=(2.0,) * 5, candidate_ms=(1.0,) * 5).standard_error
        0.0
        """
        low, median, high = statistics.quantiles(self.ratios, n=4, method="inclusive")
        return 0.93 * (high - low) / median / math.sqrt(len(self.ratios))


@dataclass(kw_only=True, slots=True)
class Evenness:
    """Whether a candidate's exchanges take alike as the reference's do, or some do the work of others.

    The quickest of a round counts, which is right where disturbances make the others slower: they meet both programs
    for as long. A candidate that prepares in one call what the next ones need has slow exchanges of its own.

    >>> evenness = Evenness()
    >>> for _ in range(20):
    ...     evenness.add([(2.0, 1.0), (2.0, 3.0)])
    >>> evenness.charge
    2.0
    """

    _num_rounds: int = 0
    _quickest_ms: float = 0.0
    _excess_ms: float = 0.0
    _squares: float = 0.0

    def add(self, exchanges: Sequence[tuple[float, float]]) -> None:
        """Take up a round: what each exchange took of the reference and of the candidate."""
        excess_ms = []
        for times in zip(*exchanges, strict=True):
            quickest = min(times)
            excess_ms.append(statistics.fmean(min(time, STALLED * quickest) for time in times) - quickest)
        difference = excess_ms[1] - excess_ms[0]
        self._num_rounds += 1
        self._quickest_ms += quickest  # the candidate's
        self._excess_ms += difference
        self._squares += difference * difference

    @property
    def charge(self) -> float:
        """What the candidate's times are to be multiplied by: 1, unless its exchanges are surely less even."""
        if self._num_rounds < MIN_ROUNDS:
            return 1.0
        excess_ms, quickest_ms = self._excess_ms / self._num_rounds, self._quickest_ms / self._num_rounds
        error = math.sqrt(max(0.0, self._squares / self._num_rounds - excess_ms**2) / self._num_rounds)
        is_sure = excess_ms > max(UNEVEN * quickest_ms, SURE_ERRORS * error)
        return 1.0 + excess_ms / quickest_ms if is_sure else 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """What asking for nothing takes."""

    taken_ms: float
    """From the question to the answer."""
    stop_ms: float
    """Letting the worker run, waking up at its answer, and what the worker takes of a core until it has stopped."""


def plan(call_ms: float, *, rounds: int, max_calls: int, input_bytes: int) -> Plan:
    """Single calls where they are long, else as many in an exchange as make a good time together.

    >>> plan(3.0, rounds=9, max_calls=32, input_bytes=4096)
    Plan(calls=1, exchanges=2, singles=0, rounds=9)
    >>> plan(0.01, rounds=9, max_calls=32, input_bytes=4096)
    Plan(calls=32, exchanges=2, singles=8, rounds=9)

    Args:
        call_ms: about what a call takes.
        max_calls: for how many one exchange has room.
        input_bytes: of one call, which are new every time.
    """
    call_ms = max(call_ms, RESOLUTION_MS)
    wanted = math.ceil(EXCHANGE_MS / call_ms)
    affordable = INPUTS_BYTES // (rounds * MAX_BATCHES * max(input_bytes, 1))
    calls = min(wanted, max_calls, MAX_CALLS, (affordable - SINGLES) // MIN_EXCHANGES)
    if call_ms >= SHORT_CALL_MS or calls < 2:
        exchanges = max(MIN_EXCHANGES, min(wanted, affordable, MAX_EXCHANGES))
        return Plan(calls=1, exchanges=exchanges, singles=0, rounds=rounds)
    return Plan(calls=calls, exchanges=MIN_EXCHANGES, singles=SINGLES, rounds=rounds)


def affordable_rounds(rounds: int, *, round_ms: float, budget_s: float) -> int:
    """As many rounds as asked for, or fewer where they would take longer than the budget, but never too few.

    >>> affordable_rounds(9, round_ms=10.0, budget_s=3.0), affordable_rounds(9, round_ms=2_000.0, budget_s=3.0)
    (9, 5)
    """
    return max(MIN_ROUNDS, min(rounds, int(budget_s * 1e3 / max(round_ms, RESOLUTION_MS))))


def measure_until_settled(
    take_round: Callable[[], Round], *, rounds: int, settled_error: float = SETTLED_ERROR
) -> Rounds:
    """Batches of rounds until the speedup is known well enough, MAX_BATCHES at most; those of them that are paid."""
    taken: list[Round] = []
    for _ in range(MAX_BATCHES):
        taken += [take_round() for _ in range(rounds)]
        settled = paid(taken)
        if settled.standard_error <= settled_error:
            break
    return settled


def paid(taken: Sequence[Round]) -> Rounds:
    """The rounds that decide about the speedup.

    Those of many calls in an exchange are exact to a share of a microsecond, but a candidate sees all inputs of an
    exchange at its start, and may do the work of all calls together. Single calls give no such chance. So many are
    believed no further than single calls support them: where they say more, the single calls are paid.
    """
    many = Rounds.of([one.many for one in taken]).steadiest
    singles = [one.single for one in taken if one.single is not None]
    if not singles:
        return many
    single = Rounds.of(singles).steadiest
    return many if many.speedup <= SUPPORT * single.speedup else single


def net_ms(taken_ms: float, outer_ms: float, exchange: Exchange) -> float:
    """The time of calls without what asking for them and handing over their outputs takes anyway.

    The exchange is measured on the reference's worker, which no candidate can slow down. A worker that takes longer to
    be stopped than the reference does may be working on after its answer, and is charged for it. What is left is never
    taken below the resolution, nor below a tenth of what was subtracted.

    >>> exchange = Exchange(taken_ms=0.2, stop_ms=0.1)
    >>> [round(net_ms(*times, exchange), 3) for times in ((5.2, 5.3), (5.2, 7.35), (0.2, 0.3))]
    [5.0, 7.0, 0.02]

    Args:
        taken_ms: from the question to the answer.
        outer_ms: from before the worker was let run until it was told to stop, and what it took of a core after that.
    """
    late_ms = max(0.0, outer_ms - taken_ms - PATIENCE * exchange.stop_ms)
    return max(taken_ms + late_ms - exchange.taken_ms, exchange.taken_ms / 10, RESOLUTION_MS)


def low_quartile(samples_ms: Sequence[float]) -> float:
    """A low quantile, since most noise only adds; not the least, which the luck of one sample decides.

    >>> low_quartile([1.0, 1.0, 1.0, 1.0, 30.0])
    1.0
    """
    return statistics.quantiles(samples_ms, n=4, method="inclusive")[0]


def agree(one: float, other: float, *, tolerance: float) -> bool:
    """Whether the larger speedup is at most the tolerance above the smaller.

    >>> agree(3.3, 3.0, tolerance=0.1), agree(3.0, 3.4, tolerance=0.1)
    (True, False)
    """
    return max(one, other) <= (1 + tolerance) * min(one, other) * (1 + 1e-9)


def nearer_to_one(one: float, other: float) -> bool:
    """Whether the first speedup claims less than the second, in either direction.

    >>> nearer_to_one(3.1, 3.3), nearer_to_one(0.5, 1.5)
    (True, False)
    """
    return abs(math.log(one)) <= abs(math.log(other))
