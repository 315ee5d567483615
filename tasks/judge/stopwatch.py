"""Times a candidate beside its reference, round by round, in one pair of processes."""

import math
import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tasks.judge import timing
from tasks.judge.pair import Pair
from tasks.judge.program import MIN_SLOTS, Answers

EXCHANGES = 9
FIRST_CALLS = 2

Compare = Callable[[Sequence[np.ndarray], Answers, Answers], None]
"""Takes inputs, the candidate's answers and the truth; raises if they are not equal."""
Disguise = Callable[[Sequence[np.ndarray]], tuple[Sequence[np.ndarray], Compare]]
"""Takes the inputs of an exchange; gives others in their place, and how what is answered to those is compared."""
DISGUISED_SHARE = 0.5
"""Of the series of exchanges in a round, those with a trial among them that looks like one of them."""


class Stopwatch:
    """Takes rounds of timed calls, all on inputs that neither program has seen.

    Pairing cancels slow drift; the random order keeps either program from always running on the other's warm cache. Of
    the exchanges of a round the quickest counts: whatever disturbs one makes it slower, and since outputs are compared
    none is quick without having done the work, unless another did it before.
    """

    def __init__(
        self,
        pair: Pair,
        inputs: Iterator[np.ndarray],
        *,
        rounds: int,
        budget_s: float,
        compare: Compare,
        disguise: Disguise,
        rng: random.Random,
    ) -> None:
        """Find out how long a call takes, and with it how calls are put together.

        Args:
            pair: two programs that have answered before, the reference with held outputs.
            rounds: of one batch, where that takes no longer than the budget.
            disguise: makes trials of exchanges, whose times do not count.
        """
        self._pair = pair
        self._inputs = inputs
        self._compare = compare
        self._disguise = disguise
        self._rng = rng
        self._exchanges = {1: self._exchange(1)}
        first = [self._call(1) for _ in range(FIRST_CALLS)]
        both_ms = [min(times) for times in zip(*first, strict=True)]
        plan = timing.plan(
            math.sqrt(math.prod(both_ms)),
            rounds=rounds,
            max_calls=pair.candidate.layout.num_slots,
            input_bytes=pair.input_bytes,
        )
        self.plan = plan
        self.evenness = timing.Evenness()
        self.rounds = timing.affordable_rounds(rounds, round_ms=plan.calls_per_round * sum(both_ms), budget_s=budget_s)
        if plan.calls > 1:
            self._exchanges[plan.calls] = self._exchange(plan.calls)
            self._call(plan.calls)  # the first to touch its part of the arena

    def take_round(self) -> timing.Round:
        """Both programs on the same new inputs; raises what comparing and failing programs raise."""
        plan = self.plan
        many = self._series(plan.calls, plan.exchanges)
        self.evenness.add(many)
        singles = self._series(1, plan.singles)
        return timing.Round(
            many=(min(r for r, _ in many), min(c for _, c in many)),
            single=_low_quartiles(singles) if singles else None,
        )

    def _series(self, calls: int, count: int) -> list[tuple[float, float]]:
        """What calls took in so many exchanges; somewhere among them, at times, another that only checks."""
        disguised_at = self._rng.randrange(count) if count and self._rng.random() < DISGUISED_SHARE else None
        times = []
        for number in range(count):
            if number == disguised_at:
                self._call(calls, is_disguised=True)
            times.append(self._call(calls))
        return times

    def _call(self, calls: int, *, is_disguised: bool = False) -> tuple[float, float]:
        """What a call took of the reference and of the candidate, in ms, when so many are asked for at once."""
        with self._pair.uncounted():
            blocks: Sequence[np.ndarray] = [next(self._inputs) for _ in range(calls)]
            compare = self._compare
            if is_disguised:
                blocks, compare = self._disguise(blocks)
        # Numbers of tensors come again: whoever keeps something under one is to find a tensor of another place there.
        first_slot = self._rng.randrange(min(MIN_SLOTS, self._pair.candidate.layout.num_slots - calls + 1))
        if self._rng.random() < 0.5:
            truths = self._pair.truths(blocks, first_slot=first_slot)
            answers = self._pair.answers(blocks, first_slot=first_slot)
        else:
            answers = self._pair.answers(blocks, first_slot=first_slot)
            truths = self._pair.truths(blocks, first_slot=first_slot)
        compare(blocks, answers, truths)
        exchange = self._exchanges[calls]
        reference_ms, candidate_ms = (
            timing.net_ms(asked.taken_ms, asked.outer_ms, exchange) / calls for asked in (truths, answers)
        )
        return reference_ms, candidate_ms

    def _exchange(self, calls: int) -> timing.Exchange:
        asked = [self._pair.exchange(calls=calls) for _ in range(EXCHANGES)]
        return timing.Exchange(
            taken_ms=timing.low_quartile([answers.taken_ms for answers in asked]),
            stop_ms=timing.low_quartile([answers.outer_ms - answers.taken_ms for answers in asked]),
        )


def _low_quartiles(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    reference_ms, candidate_ms = (timing.low_quartile(times) for times in zip(*pairs, strict=True))
    return reference_ms, candidate_ms
