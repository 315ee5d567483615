"""Times a candidate beside its reference on a device; what Stopwatch is for the processor."""

import math
import random
from collections.abc import Iterator

import numpy as np

from tasks.judge import device_timing, timing
from tasks.judge.device_timing import Patience
from tasks.judge.pair import Pair
from tasks.judge.stopwatch import Compare

FIRST_CALLS, FIRST_ROWS = 5, 3
"""Before the first round, so that it is known what an exchange of each kind usually takes around its calls."""
SHORT_ROW, SHORT_ROWS = 4, 2
"""Tell what a call takes in a row, before it is known how long rows are to be."""


class DeviceStopwatch:
    """Takes rounds of timed calls, on inputs that neither program has seen.

    In single calls the device waits until the host has launched everything, and its caches are cold: nothing can be
    merged with other calls or done ahead. Rows of calls show what launching takes. A call is charged for the slower of
    both, so that merging the calls of a row gains nothing over the device's own time.
    """

    def __init__(
        self,
        pair: Pair,
        inputs: Iterator[np.ndarray],
        *,
        rounds: int,
        budget_s: float,
        compare: Compare,
        rng: random.Random,
    ) -> None:
        """Find out how long a call takes, and with it how calls are put together.

        Args:
            pair: two programs that have answered before.
            rounds: of one batch, where that takes no longer than the budget.
        """
        self._pair = pair
        self._inputs = inputs
        self._compare = compare
        self._rng = rng
        self._patience: dict[tuple[int, bool], Patience] = {}
        first = [self._call(1, 1, cold=True) for _ in range(FIRST_CALLS)]
        short = [self._call(SHORT_ROW, 1, cold=False) for _ in range(SHORT_ROWS)]
        cold_ms, row_ms = ([min(times) for times in zip(*taken, strict=True)] for taken in (first, short))
        # Launching many small kernels takes ten times as long as they do: the row is then as long as that.
        both_ms = [max(times) for times in zip(cold_ms, row_ms, strict=True)]
        self.plan = plan = device_timing.plan(math.sqrt(math.prod(both_ms)), rounds=rounds)
        slots = pair.candidate.layout.num_slots
        self._num_blocks = device_timing.num_blocks(plan, slots=slots, input_bytes=pair.input_bytes)
        self.rounds = timing.affordable_rounds(rounds, round_ms=plan.calls_per_round * sum(both_ms), budget_s=budget_s)
        for _ in range(FIRST_ROWS):
            self._call(plan.calls, self._num_blocks, cold=False)

    def take_round(self) -> timing.Round:
        """Both programs on the same new inputs; raises what comparing and failing programs raise."""
        plan = self.plan
        rows = [self._call(plan.calls, self._num_blocks, cold=False) for _ in range(plan.exchanges)]
        least = [min(times) for times in zip(*rows, strict=True)]
        if singles := [self._call(1, 1, cold=True) for _ in range(plan.singles)]:
            cold = [timing.low_quartile(times) for times in zip(*singles, strict=True)]
            least = [max(times) for times in zip(least, cold, strict=True)]
        return timing.Round(many=(least[0], least[1]))

    def _call(self, calls: int, num_blocks: int, *, cold: bool) -> tuple[float, float]:
        """What a call took of the reference and of the candidate, in ms."""
        with self._pair.uncounted():
            blocks = [next(self._inputs) for _ in range(num_blocks)]
        order = [number % num_blocks for number in range(calls)]
        self._rng.shuffle(order)
        if self._rng.random() < 0.5:
            truths = self._pair.truths_on_device(blocks, order, cold=cold)
            answers = self._pair.answers_on_device(blocks, order, cold=cold)
        else:
            answers = self._pair.answers_on_device(blocks, order, cold=cold)
            truths = self._pair.truths_on_device(blocks, order, cold=cold)
        is_large = self._pair.input_bytes + self._pair.output_bytes > device_timing.LARGE_BYTES
        if not is_large or self._rng.random() < device_timing.LARGE_SHARE:
            self._compare(blocks, answers, truths)
        patience = self._patience.setdefault((calls, cold), Patience())
        return patience.note(truths) / calls, patience.charged_ms(answers) / calls
