"""Times are reduced to a speedup by pure functions; here programs take what a table says, on no real clock."""

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from tasks.judge import timing
from tasks.judge.program import Answers
from tasks.judge.stopwatch import Compare, Stopwatch
from tasks.judge.timing import Exchange, Round, Rounds
from tasks.judge.verdict import Timing, median_interval

EXCHANGE_MS, COPY_MS, STOP_MS = 0.03, 0.002, 0.05
Program = Callable[[int], float]
"""The ms that so many calls in one exchange take."""


class SimulatedPair:
    """Two programs whose exchanges take what the table says: a Pair without processes."""

    def __init__(self, reference: Program, candidate: Program, *, stop_ms: float = STOP_MS, input_bytes: int = 4096):
        self._programs = {"reference": reference, "candidate": candidate}
        self._stop_ms = stop_ms
        self.candidate = SimpleNamespace(layout=SimpleNamespace(num_slots=32))
        self.input_bytes = input_bytes
        self.asked: list[str] = []
        self.slots: list[range] = []

    def uncounted(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def truths(self, blocks: Sequence[np.ndarray], *, first_slot: int) -> Answers:
        self.slots.append(range(first_slot, first_slot + len(blocks)))
        return self._asked("reference", len(blocks), STOP_MS)

    def answers(self, blocks: Sequence[np.ndarray], *, first_slot: int) -> Answers:
        self.slots.append(range(first_slot, first_slot + len(blocks)))
        return self._asked("candidate", len(blocks), self._stop_ms)

    def exchange(self, *, calls: int) -> Answers:
        return self._took(EXCHANGE_MS + calls * COPY_MS, STOP_MS)

    def _asked(self, name: str, calls: int, stop_ms: float) -> Answers:
        self.asked.append(name)
        return self._took(EXCHANGE_MS + calls * COPY_MS + self._programs[name](calls), stop_ms)

    def _took(self, taken_ms: float, stop_ms: float) -> Answers:
        return Answers(specs=[], outputs=[], taken_ms=taken_ms, outer_ms=taken_ms + stop_ms)


def each(call_ms: float) -> Program:
    return lambda calls: calls * call_ms


def blocks() -> Iterator[np.ndarray]:
    while True:
        yield np.zeros(0, dtype=np.uint8)


def undisguised(blocks: Sequence[np.ndarray]) -> tuple[Sequence[np.ndarray], Compare]:
    return blocks, lambda *_: None


def stopwatch(pair: SimulatedPair, *, rounds: int = 9) -> Stopwatch:
    rng = random.Random(0)
    return Stopwatch(
        pair, blocks(), rounds=rounds, budget_s=3.0, compare=lambda *_: None, disguise=undisguised, rng=rng
    )


def measured(reference: Program, candidate: Program, **how: float) -> Rounds:
    watch = stopwatch(SimulatedPair(reference, candidate, **how))
    return timing.measure_until_settled(watch.take_round, rounds=watch.rounds)


@pytest.mark.parametrize("call_ms", [0.01, 0.04, 0.3, 2.0, 50.0])
def test_what_an_exchange_takes_is_in_no_time(call_ms: float) -> None:
    taken = measured(each(call_ms), each(call_ms / 2))
    assert taken.reference_ms[0] == pytest.approx(call_ms)
    assert taken.speedup == pytest.approx(2.0)


def test_work_of_several_calls_done_at_once_is_paid_as_single_calls_are() -> None:
    assert measured(each(0.01), lambda calls: 0.01).speedup == pytest.approx(1.0)


def test_single_calls_that_are_slower_at_first_do_not_hide_a_real_speedup() -> None:
    cold_ms = 0.01
    taken = measured(lambda calls: cold_ms + calls * 0.02, lambda calls: cold_ms + calls * 0.005)
    assert 2.0 <= taken.speedup <= 4.0


def test_work_that_goes_on_after_the_answer_is_charged() -> None:
    late_ms = 2.0
    taken = measured(each(2.0), each(0.5), stop_ms=STOP_MS * timing.PATIENCE + late_ms)
    assert taken.speedup == pytest.approx(2.0 / (0.5 + late_ms))


def test_both_orders_occur_and_both_programs_are_asked_alike() -> None:
    pair = SimulatedPair(each(2.0), each(2.0))
    watch = stopwatch(pair)
    for _ in range(20):
        watch.take_round()
    assert pair.asked.count("reference") == pair.asked.count("candidate")
    assert {"reference", "candidate"} == set(pair.asked[::2])


def test_inputs_lie_now_here_and_now_there_and_for_both_programs_alike() -> None:
    pair = SimulatedPair(each(2.0), each(2.0))
    watch = stopwatch(pair)
    for _ in range(20):
        watch.take_round()
    assert {range(1), range(1, 2)} == set(pair.slots)
    assert pair.slots[::2] == pair.slots[1::2]


def test_no_exchange_goes_past_the_last_slot() -> None:
    pair = SimulatedPair(each(0.02), each(0.02))
    pair.candidate.layout.num_slots = 8
    watch = stopwatch(pair)
    for _ in range(20):
        watch.take_round()
    assert {range(1), range(1, 2), range(8)} == set(pair.slots)


@pytest.mark.parametrize(
    ("call_ms", "input_bytes", "calls", "singles"),
    [
        pytest.param(0.01, 4096, 32, 8, id="short"),
        pytest.param(0.2, 4096, 5, 8, id="a fifth of a millisecond"),
        pytest.param(0.31, 4096, 1, 0, id="long enough"),
        pytest.param(5.0, 4096, 1, 0, id="long"),
        pytest.param(0.01, 1 << 20, 1, 0, id="short, but its inputs take long to draw"),
    ],
)
def test_short_calls_share_an_exchange(call_ms: float, input_bytes: int, calls: int, singles: int) -> None:
    plan = stopwatch(SimulatedPair(each(call_ms), each(call_ms), input_bytes=input_bytes)).plan
    assert (plan.calls, plan.singles) == (calls, singles)


def test_a_steady_ratio_takes_one_batch() -> None:
    taken = timing.measure_until_settled(lambda: Round(many=(2.0, 1.0)), rounds=9)
    assert taken == Rounds(reference_ms=(2.0,) * 9, candidate_ms=(1.0,) * 9)


def test_a_restless_ratio_takes_all_batches_and_stays_uncertain() -> None:
    rng, num_rounds = random.Random(1), 0

    def take_round() -> Round:
        nonlocal num_rounds
        num_rounds += 1
        return Round(many=(10 ** rng.uniform(0, 3), 1.0))

    taken = timing.measure_until_settled(take_round, rounds=9)
    assert num_rounds == 9 * timing.MAX_BATCHES
    assert taken.standard_error > timing.UNSTABLE_ERROR


def test_frequent_disturbances_are_outlived() -> None:
    rng = random.Random(2)

    def disturbed(call_ms: float) -> float:
        return call_ms * (rng.uniform(1.5, 9.0) if rng.random() < 0.4 else rng.uniform(1.0, 1.02))

    taken = timing.measure_until_settled(lambda: Round(many=(disturbed(2.0), disturbed(1.0))), rounds=9)
    assert taken.speedup == pytest.approx(2.0, rel=0.05)
    assert taken.standard_error < timing.UNSTABLE_ERROR


@pytest.mark.parametrize(
    ("taken_ms", "outer_ms", "net_ms"),
    [
        pytest.param(5.2, 5.25, 5.0, id="long"),
        pytest.param(0.2, 0.25, 0.02, id="as short as an exchange"),
        pytest.param(0.1, 0.15, 0.02, id="shorter than an exchange"),
        pytest.param(-3.0, 0.25, 0.02, id="the clock was set back"),
        pytest.param(0.3, 3.375, 3.1, id="answered long before it was done"),
    ],
)
def test_a_net_time_counts_work_and_nothing_else(taken_ms: float, outer_ms: float, net_ms: float) -> None:
    exchange = Exchange(taken_ms=0.2, stop_ms=0.05)
    assert timing.net_ms(taken_ms, outer_ms, exchange) == pytest.approx(net_ms)


def test_a_net_time_is_never_below_the_resolution() -> None:
    assert timing.net_ms(0.0, 0.0, Exchange(taken_ms=0.0, stop_ms=0.0)) == timing.RESOLUTION_MS


def test_slow_programs_get_fewer_rounds_but_enough() -> None:
    assert timing.affordable_rounds(9, round_ms=150.0, budget_s=1.0) == 6
    assert timing.affordable_rounds(9, round_ms=5_000.0, budget_s=1.0) == timing.MIN_ROUNDS


@pytest.mark.parametrize("count", [5, 6, 9, 18, 36])
def test_nine_of_ten_intervals_hold_the_true_median(count: int) -> None:
    rng = random.Random(count)
    drawn = [median_interval([rng.expovariate(1.0) for _ in range(count)]) for _ in range(2_000)]
    held = sum(low <= 0.6931 <= high for low, high in drawn) / len(drawn)
    assert 0.87 <= held <= 0.93


def test_an_interval_of_few_rounds_is_their_range() -> None:
    speedup = Timing(baseline="eager", reference_ms=(1.0, 2.0, 4.0), candidate_ms=(1.0, 1.0, 1.0)).speedup
    assert (speedup.low, speedup.median, speedup.high) == (1.0, 2.0, 4.0)


def test_some_exchanges_among_the_timed_ones_only_check_and_their_times_do_not_count() -> None:
    disguised: list[int] = []
    pair = SimulatedPair(each(2.0), lambda calls: calls * (900.0 if disguised and not disguised[-1] else 1.0))

    def disguise(given: Sequence[np.ndarray]) -> tuple[Sequence[np.ndarray], Compare]:
        disguised.append(0)  # until it is compared the candidate is slow
        return given, lambda *_: disguised.append(1)

    watch = Stopwatch(
        pair, blocks(), rounds=9, budget_s=3.0, compare=lambda *_: None, disguise=disguise, rng=random.Random(0)
    )
    rounds = [watch.take_round() for _ in range(40)]
    assert 10 <= disguised.count(1) <= 30
    assert all(one.many == pytest.approx((2.0, 1.0)) for one in rounds)


def test_a_candidate_whose_calls_do_the_work_of_others_is_charged_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.judge.stopwatch.DISGUISED_SHARE", 0.0)  # a call more would swap cheap and dear ones
    calls = itertools.count()
    uneven = stopwatch(SimulatedPair(each(0.9), lambda _: 0.4 if next(calls) % 2 else 1.4))
    even = stopwatch(SimulatedPair(each(0.9), each(0.4)))
    for _ in range(9):
        uneven.take_round()
        even.take_round()
    assert even.evenness.charge == 1.0
    assert uneven.evenness.charge == pytest.approx(0.9 / 0.4, rel=0.05)


def test_disturbances_that_meet_both_alike_are_not_charged() -> None:
    rng = random.Random(0)

    def disturbed(call_ms: float) -> Program:
        return lambda _: call_ms + rng.choice([0.0, 0.0, 0.7, 2.0])

    for _ in range(20):
        watch = stopwatch(SimulatedPair(disturbed(2.0), disturbed(0.5)))
        for _ in range(27):
            watch.take_round()
        assert watch.evenness.charge == 1.0
