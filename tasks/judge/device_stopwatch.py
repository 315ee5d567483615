"""Times a candidate beside its reference on a device; what Stopwatch is for the processor."""

import math
import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from tasks.judge import device_timing, timing
from tasks.judge.blocks import is_on_host
from tasks.judge.device_timing import FEW, MORE, Patience
from tasks.judge.pair import Pair
from tasks.judge.stopwatch import Compare

FIRST_CALLS, FIRST_ROWS = 5, 3
"""Before the first round, so that it is known what an exchange of each kind usually takes, around its calls too."""


class DeviceStopwatch:
    """Takes rounds of timed calls, on inputs that neither program has seen.

    In single calls the device waits until the host has launched everything, and its caches are cold: nothing can be
    merged with other calls or done ahead. Rows of calls show what launching takes, without what beginning a row does,
    for which nobody is charged more than the reference. A call is charged for the slower of both, so that merging the
    calls of a row gains nothing over the device's own time.
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
        cold_ms = _each(min, [self._exchange(1, 1, cold=True) for _ in range(FIRST_CALLS)])
        row_ms = cold_ms if max(cold_ms) >= device_timing.LONG_CALL_MS else self._in_rows()
        launching_shows = any(row > cold for row, cold in zip(row_ms, cold_ms, strict=True))
        # Launching many small kernels takes ten times as long as they do: the row is then as long as that.
        both_ms = _each(max, [cold_ms, row_ms])
        self.evenness = timing.Evenness()  # of nothing: what is paid here are times of many calls in a row
        self.plan = plan = device_timing.plan(
            math.sqrt(math.prod(both_ms)), rounds=rounds, launching_shows=launching_shows
        )
        slots = pair.candidate.layout.num_slots
        self._num_blocks = device_timing.num_blocks(plan, slots=slots, input_bytes=pair.input_bytes)
        self.rounds = timing.affordable_rounds(rounds, round_ms=plan.calls_per_round * sum(both_ms), budget_s=budget_s)
        for _ in range(FIRST_ROWS if plan.exchanges else 0):
            self._row()

    def _in_rows(self) -> tuple[float, float]:
        """About what a call in a row takes, in ms; learns what beginning a row does."""
        few_ms, more_ms = (
            _each(min, [self._exchange(calls, 1, cold=False) for _ in range(FIRST_ROWS)]) for calls in (FEW, MORE)
        )
        reference_ms, candidate_ms = map(device_timing.start_ms, few_ms, more_ms)
        self._starts_ms = (reference_ms, min(reference_ms, candidate_ms))
        one, other = ((more - few) / (MORE - FEW) for few, more in zip(few_ms, more_ms, strict=True))
        return one, other

    def take_round(self) -> timing.Round:
        """Both programs on the same new inputs; raises what comparing and failing programs raise."""
        taken_ms = []
        if rows := [self._row() for _ in range(self.plan.exchanges)]:
            taken_ms.append(_each(min, rows))
        if singles := [self._exchange(1, 1, cold=True) for _ in range(self.plan.singles)]:
            # Alone they decide, and of large outputs not all are compared: a single one that did nothing must not pay.
            taken_ms.append(_each(timing.low_quartile if rows else statistics.median, singles))
        return timing.Round(many=_each(max, taken_ms))

    def _row(self) -> tuple[float, float]:
        """What a call in a row took of the reference and of the candidate, in ms."""
        calls = self.plan.calls
        taken_ms = self._exchange(calls, self._num_blocks, cold=False)
        one, other = (
            max((taken - start) / calls, timing.RESOLUTION_MS)
            for taken, start in zip(taken_ms, self._starts_ms, strict=True)
        )
        return one, other

    def _exchange(self, calls: int, num_blocks: int, *, cold: bool) -> tuple[float, float]:
        """What so many calls took of the reference and of the candidate, in ms."""
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
        if not is_large or not is_on_host(blocks[0]) or self._rng.random() < device_timing.LARGE_SHARE:
            self._compare(blocks, answers, truths)
        patience = self._patience.setdefault((calls, cold), Patience())
        return patience.note(truths), patience.charged_ms(answers)


def _each(choose: Callable[[Sequence[float]], float], taken_ms: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Of the reference's times one, and of the candidate's."""
    reference_ms, candidate_ms = zip(*taken_ms, strict=True)
    return choose(reference_ms), choose(candidate_ms)
