"""How calls on a device are put together and what they are charged for: pure functions, no clock and no device.

A call takes as long as the slower of two things: the device with cold caches, when all is launched ahead, and a row of
calls, in which the host may be what limits. Both are read from events of the worker's device, which only the worker
can read. So the referee's clock decides whether they are believed: see Patience.
"""

import math
import statistics
from collections import deque

from tasks.judge.program import Answers
from tasks.judge.timing import MAX_BATCHES, MAX_CALLS, PATIENCE, RESOLUTION_MS, Plan

LONG_CALL_MS, EXCHANGE_MS = 10.0, 3.0
"""Above the first, what launching takes is nothing; calls below it are made in rows of at least the second."""
EXCHANGES, SINGLES = 2, 2
INPUTS_BYTES = 1 << 30
"""New inputs for one session: drawing, laying in and comparing a GiB takes seconds."""
LARGE_BYTES, LARGE_SHARE = 8 << 20, 0.25
"""Of exchanges with more bytes a call than the first, this share is compared: computing them takes less time."""
SLACK_MS = 0.03
"""What an exchange may take beyond the reference's without being charged, for its clock's own spread."""
REMEMBERED = 64
"""Exchanges of the reference that tell what is usual."""


def plan(call_ms: float, *, rounds: int) -> Plan:
    """Rows of calls, and single ones; long calls one by one.

    >>> plan(0.02, rounds=9)
    Plan(calls=32, exchanges=2, singles=2, rounds=9)
    >>> plan(2.0, rounds=9).calls, plan(20.0, rounds=9).calls
    (2, 1)
    """
    if call_ms >= LONG_CALL_MS:
        return Plan(calls=1, exchanges=EXCHANGES, singles=0, rounds=rounds)
    calls = max(2, min(MAX_CALLS, math.ceil(EXCHANGE_MS / max(call_ms, RESOLUTION_MS))))
    return Plan(calls=calls, exchanges=EXCHANGES, singles=SINGLES, rounds=rounds)


def num_blocks(chosen: Plan, *, slots: int, input_bytes: int) -> int:
    """How many inputs a row of calls has; there are more calls than inputs where inputs are large.

    >>> chosen = plan(0.02, rounds=9)
    >>> [num_blocks(chosen, slots=32, input_bytes=size) for size in (1 << 12, 1 << 20, 1 << 24)]
    [32, 8, 1]
    """
    affordable = INPUTS_BYTES // (chosen.rounds * MAX_BATCHES * max(input_bytes, 1))
    return max(1, min(chosen.calls, slots, (affordable - chosen.singles) // chosen.exchanges))


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
