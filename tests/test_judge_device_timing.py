"""What calls on a device are charged for; here programs take what a table says, on no real device."""

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from tasks.judge import device_timing, timing
from tasks.judge.device_stopwatch import DeviceStopwatch
from tasks.judge.program import Answers
from tasks.judge.timing import Rounds

AROUND_MS, AFTER_MS = 0.3, 0.2


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """A program on a simulated device."""

    cold_ms: float
    """What the device takes for one call when all is launched ahead."""
    launch_ms: float = 0.0
    """What the host takes for a call."""
    start_ms: float = 0.0
    """What the host takes besides for the first call of a row."""
    dawdles: bool = False
    """Whether it is slow in short rows, to seem slow to start."""
    merges: bool = False
    """Whether it does the work of all calls of a row at once."""
    told_share: float = 1.0
    """How much of the device's time it admits."""
    hidden_ms: float = 0.0
    """Work on another stream, which no event sees, before the answer."""
    late_ms: float = 0.0
    """Work after the answer."""

    def answers(self, calls: int, *, cold: bool) -> Answers:
        once = 1 if self.merges else calls
        device_ms = once * (self.cold_ms if cold else max(self.cold_ms, self.launch_ms))
        device_ms += 0.0 if cold else self.start_ms + 5.0 * (self.dawdles and calls == device_timing.FEW)
        taken_ms = AROUND_MS + device_ms + self.hidden_ms
        return Answers(
            specs=[],
            outputs=[],
            taken_ms=taken_ms,
            outer_ms=taken_ms + AFTER_MS + self.late_ms,
            device_ms=device_ms * self.told_share,
        )


class SimulatedPair:
    """A Pair without processes or a device."""

    def __init__(self, reference: Simulated, candidate: Simulated, *, input_bytes: int = 4096) -> None:
        self._programs = {"reference": reference, "candidate": candidate}
        self.candidate = SimpleNamespace(layout=SimpleNamespace(num_slots=32))
        self.input_bytes = self.output_bytes = input_bytes
        self.asked: list[tuple[str, int, tuple[int, ...]]] = []

    def uncounted(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def truths_on_device(self, blocks: Sequence[np.ndarray], order: Sequence[int], *, cold: bool) -> Answers:
        return self._asked("reference", blocks, order, cold=cold)

    def answers_on_device(self, blocks: Sequence[np.ndarray], order: Sequence[int], *, cold: bool) -> Answers:
        return self._asked("candidate", blocks, order, cold=cold)

    def _asked(self, name: str, blocks: Sequence[np.ndarray], order: Sequence[int], *, cold: bool) -> Answers:
        self.asked.append((name, len(blocks), tuple(order)))
        return self._programs[name].answers(len(order), cold=cold)


def blocks() -> Iterator[np.ndarray]:
    while True:
        yield np.zeros(0, dtype=np.uint8)


def stopwatch(pair: SimulatedPair, compare: Callable[..., None] = lambda *_: None) -> DeviceStopwatch:
    return DeviceStopwatch(pair, blocks(), rounds=9, budget_s=3.0, compare=compare, rng=random.Random(0))


def measured(reference: Simulated, candidate: Simulated, **how: int) -> Rounds:
    watch = stopwatch(SimulatedPair(reference, candidate, **how))
    return timing.measure_until_settled(watch.take_round, rounds=watch.rounds)


@pytest.mark.parametrize("call_ms", [0.005, 0.05, 0.5, 5.0, 50.0])
@pytest.mark.parametrize("input_bytes", [4096, 1 << 24])
def test_a_call_takes_what_the_device_takes(call_ms: float, input_bytes: int) -> None:
    taken = measured(Simulated(cold_ms=call_ms), Simulated(cold_ms=call_ms / 2), input_bytes=input_bytes)
    assert taken.reference_ms[0] == pytest.approx(call_ms)
    assert taken.speedup == pytest.approx(2.0)


def test_where_the_host_is_slower_launching_counts() -> None:
    reference = Simulated(cold_ms=0.02, launch_ms=0.08)
    assert measured(reference, Simulated(cold_ms=0.02, launch_ms=0.01)).speedup == pytest.approx(4.0)


def test_a_row_is_no_longer_for_what_launching_takes() -> None:
    pair = SimulatedPair(Simulated(cold_ms=0.02, launch_ms=0.4), Simulated(cold_ms=0.02, launch_ms=0.4))
    assert stopwatch(pair).plan.calls == 10
    quick = SimulatedPair(Simulated(cold_ms=0.01, launch_ms=0.02), Simulated(cold_ms=0.01, launch_ms=0.02))
    assert stopwatch(quick).plan.calls == device_timing.ROW_CALLS


def test_where_launching_is_hidden_behind_the_device_there_are_no_rows() -> None:
    pair = SimulatedPair(Simulated(cold_ms=0.5, launch_ms=0.1), Simulated(cold_ms=0.25, launch_ms=0.1))
    watch = stopwatch(pair)
    pair.asked.clear()
    assert watch.take_round().many == pytest.approx((0.5, 0.25))
    assert {len(order) for *_, order in pair.asked} == {1}


def test_rows_are_kept_where_only_the_candidate_is_limited_by_launching() -> None:
    reference, candidate = Simulated(cold_ms=0.5, launch_ms=0.1), Simulated(cold_ms=0.1, launch_ms=0.4)
    assert measured(reference, candidate).speedup == pytest.approx(1.25)


def test_what_beginning_a_row_takes_is_charged_to_nobody() -> None:
    reference = Simulated(cold_ms=0.01, launch_ms=0.08, start_ms=0.4)
    taken = measured(reference, Simulated(cold_ms=0.01, launch_ms=0.02, start_ms=0.4))
    assert taken.speedup == pytest.approx(4.0)
    assert taken.reference_ms[0] == pytest.approx(0.08)


def test_who_takes_longer_to_begin_than_the_reference_is_charged_for_the_rest() -> None:
    reference = Simulated(cold_ms=0.01, launch_ms=0.04, start_ms=0.1)
    slow = measured(reference, Simulated(cold_ms=0.01, launch_ms=0.04, start_ms=2.0))
    assert slow.candidate_ms[0] == pytest.approx(0.04 + 1.9 / 100)


def test_who_begins_at_once_gains_nothing_from_what_the_reference_takes() -> None:
    reference = Simulated(cold_ms=0.01, launch_ms=0.04, start_ms=0.4)
    assert measured(reference, Simulated(cold_ms=0.01, launch_ms=0.04)).speedup == pytest.approx(1.0)


def test_who_dawdles_in_short_rows_gains_no_more_than_the_reference_takes_to_begin() -> None:
    reference = Simulated(cold_ms=0.01, launch_ms=0.04, start_ms=0.1)
    paid = measured(reference, Simulated(cold_ms=0.01, launch_ms=0.04, dawdles=True))
    assert paid.candidate_ms[0] >= 0.04 - 0.1 / 100


def test_merging_the_calls_of_a_row_gains_nothing() -> None:
    assert measured(Simulated(cold_ms=0.05), Simulated(cold_ms=0.05, merges=True)).speedup == pytest.approx(1.0)


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(Simulated(cold_ms=0.5, told_share=0.0), id="says that its device took nothing"),
        pytest.param(Simulated(cold_ms=0.1, hidden_ms=3.0), id="works on another stream"),
        pytest.param(Simulated(cold_ms=0.1, late_ms=3.0), id="works on after its answer"),
    ],
)
def test_what_the_events_do_not_see_the_clock_does(hostile: Simulated) -> None:
    assert measured(Simulated(cold_ms=0.5), hostile).speedup <= 1.1


def test_every_input_of_a_row_is_called_on_and_all_are_compared() -> None:
    compared: list[int] = []
    pair = SimulatedPair(Simulated(cold_ms=0.05), Simulated(cold_ms=0.05), input_bytes=1 << 20)
    watch = stopwatch(pair, lambda blocks, *_: compared.append(len(blocks)))
    watch.take_round()
    rows = [(num_blocks, order) for _, num_blocks, order in pair.asked if len(order) > 1]
    assert rows
    assert all(set(order) == set(range(num_blocks)) for num_blocks, order in rows)
    assert len(compared) == len(pair.asked) / 2


def test_of_large_outputs_some_exchanges_are_compared_that_nobody_can_foresee() -> None:
    compared: list[int] = []
    pair = SimulatedPair(Simulated(cold_ms=0.5), Simulated(cold_ms=0.5), input_bytes=1 << 24)
    watch = stopwatch(pair, lambda blocks, *_: compared.append(len(blocks)))
    for _ in range(50):
        watch.take_round()
    assert 0.1 < len(compared) / (len(pair.asked) / 2) < 0.4


def test_both_orders_occur_and_both_programs_are_asked_alike() -> None:
    pair = SimulatedPair(Simulated(cold_ms=2.0), Simulated(cold_ms=2.0))
    watch = stopwatch(pair)
    for _ in range(20):
        watch.take_round()
    assert [asked[1:] for asked in pair.asked[::2]] == [asked[1:] for asked in pair.asked[1::2]]
    assert {"reference", "candidate"} == {name for name, *_ in pair.asked[::2]}
