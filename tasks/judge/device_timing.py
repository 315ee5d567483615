"""How calls on a device are put together and what they are charged for: pure functions, no clock and no device.

A call takes as long as the slower of two things: the device with cold caches, when all is launched ahead, and a row of
calls, in which the host may be what limits. Both are read from events of the worker's device, which only the worker
can read. So the referee's clock decides whether they are believed: see Patience.
"""

import math
import statistics
from collections import deque

from tasks.judge.program import Answers
from tasks.judge.timing import MAX_BATCHES, PATIENCE, RESOLUTION_MS, Plan

LONG_CALL_MS, EXCHANGE_MS, ROW_CALLS = 10.0, 4.0, 128
"""From the first on, what launching takes is nothing. Rows take about the second, or are as long as the third."""
FEW, MORE = 4, 16
"""Calls of two rows that tell what a row takes to begin, and what each of its calls does."""
EXCHANGES, SINGLES, SINGLES_ALONE = 2, 2, 3
"""Rows and single calls in a round, and single calls where rows would tell nothing."""
INPUTS_BYTES = 1 << 30
"""New inputs for one session: drawing, laying in and comparing a GiB takes seconds."""
LARGE_BYTES, LARGE_SHARE = 8 << 20, 0.25
"""Of exchanges with more bytes a call than the first, this share is compared where the host must do it."""
SLACK_MS = 0.03
"""What an exchange may take beyond the reference's without being charged, for its clock's own spread."""
REMEMBERED = 64
"""Exchanges of the reference that tell what is usual."""


def plan(call_ms: float, *, rounds: int, launching_shows: bool = True) -> Plan:
    """Rows of calls, and single ones; these alone where rows would tell nothing.

    >>> plan(0.02, rounds=9)
    Plan(calls=128, exchanges=2, singles=2, rounds=9)
    >>> plan(0.02, rounds=9, launching_shows=False)
    Plan(calls=1, exchanges=0, singles=3, rounds=9)
    >>> plan(2.0, rounds=9).calls
    2

    Args:
        call_ms: about what a call takes.
        rounds: of one batch.
        launching_shows: whether a call in a row takes longer than a single one of which all is launched ahead.
    """
    if not launching_shows:
        return Plan(calls=1, exchanges=0, singles=SINGLES_ALONE, rounds=rounds)
    calls = max(2, min(ROW_CALLS, math.ceil(EXCHANGE_MS / max(call_ms, RESOLUTION_MS))))
    return Plan(calls=calls, exchanges=EXCHANGES, singles=SINGLES, rounds=rounds)


def num_blocks(chosen: Plan, *, slots: int, input_bytes: int) -> int:
    """How many inputs a row of calls has; there are more calls than inputs where inputs are large.

    >>> chosen = plan(0.02, rounds=9)
    >>> [num_blocks(chosen, slots=32, input_bytes=size) for size in (1 << 12, 1 << 20, 1 << 24)]
    [32, 8, 1]
    """
    affordable = INPUTS_BYTES // (chosen.rounds * MAX_BATCHES * max(input_bytes, 1))
    return max(1, min(chosen.calls, slots, (affordable - chosen.singles) // max(chosen.exchanges, 1)))


def start_ms(few_ms: float, more_ms: float) -> float:
    """What a row takes besides its calls: a process that was stopped finds its core's caches cold.

    >>> start_ms(0.3 + FEW * 0.05, 0.3 + MORE * 0.05), start_ms(FEW * 0.05, MORE * 0.05)
    (0.3, 0.0)

    Args:
        few_ms: a row of FEW calls.
        more_ms: a row of MORE calls.
    """
    return max(0.0, round(few_ms - FEW * (more_ms - few_ms) / (MORE - FEW), 6))


class Patience:
    """What the referee's clock shows beyond the device's in exchanges of the reference: nobody is charged for that.

    A worker that says too little about its device, works on other streams behind the events' backs, or goes on after
    its answer spends more between question and answer, or until it is stopped, than the reference does around its own
    events, and is charged for all of it.
    """

    def __init__(self) -> None:
        self._around_ms: deque[float] = deque(maxlen=REMEMBERED)
        self._after_ms: deque[float] = deque(maxlen=REMEMBERED)

    def note(self, truths: Answers) -> float:
        """Learn from an exchange of the reference; returns the ms that its calls took."""
        self._around_ms.append(truths.taken_ms - truths.device_ms)
        self._after_ms.append(truths.outer_ms - truths.taken_ms)
        return max(truths.device_ms, RESOLUTION_MS)

    def charged_ms(self, answers: Answers) -> float:
        """What the calls of a candidate's exchange are charged for."""
        around_ms = answers.taken_ms - answers.device_ms - _upper_quartile(self._around_ms) - SLACK_MS
        after_ms = answers.outer_ms - answers.taken_ms - PATIENCE * _upper_quartile(self._after_ms)
        return max(answers.device_ms + max(0.0, around_ms) + max(0.0, after_ms), RESOLUTION_MS)


def _upper_quartile(samples_ms: deque[float]) -> float:
    return statistics.quantiles(samples_ms, n=4, method="inclusive")[2] if len(samples_ms) > 1 else samples_ms[0]
