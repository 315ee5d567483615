"""Ways to compute the same are timed in turn, so that what else a device does meanwhile is no reason to choose."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tasks.variants.capture import TIMED, named


class Device:
    """A host's clock and a device's, in milliseconds: the host launches, and the device takes its time after that."""

    def __init__(self) -> None:
        self.now = 0.0
        self.free_at = 0.0
        self.asked: list[str] = []

    def runs(self, milliseconds: float) -> None:
        self.free_at = max(self.now, self.free_at) + milliseconds

    def synchronize(self) -> None:
        self.now = max(self.now, self.free_at)

    def event(self, *, enable_timing: bool) -> Any:
        assert enable_timing
        event = SimpleNamespace(synchronize=self.synchronize)
        event.record = lambda: setattr(event, "at", max(self.now, self.free_at))
        event.elapsed_time = lambda end: end.at - event.at
        return event

    def taking(
        self, name: str, milliseconds: Callable[[], float], *, to_launch: Callable[[], float] = lambda: 0.0
    ) -> Callable[[], None]:
        def call() -> None:
            self.asked.append(name)
            self.now += to_launch()
            self.runs(milliseconds())

        return call


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.fixture
def best_ms(device: Device) -> Callable[[list[Callable[[], None]]], tuple[list[float], list[float]]]:
    names: dict[str, Any] = {
        "torch": SimpleNamespace(
            cuda=SimpleNamespace(
                Event=device.event, synchronize=device.synchronize, _sleep=lambda cycles: device.runs(cycles / 2e6)
            )
        ),
        "time": SimpleNamespace(monotonic=lambda: device.now / 1e3, perf_counter=lambda: device.now / 1e3),
    }
    exec(named(TIMED, "any"), names)
    found: Callable[[list[Callable[[], None]]], tuple[list[float], list[float]]] = names["any_best_ms"]
    return found


def test_a_neighbour_that_holds_the_device_for_a_while_changes_nothing(device, best_ms):
    def beside_a_neighbour(alone: float) -> Callable[[], float]:
        return lambda: alone + (5.0 if device.now < 20.0 else 0.0)

    calls = [device.taking("slow", beside_a_neighbour(0.2)), device.taking("fast", beside_a_neighbour(0.1))]
    assert best_ms(calls) == (pytest.approx([0.2, 0.1]), pytest.approx([0.2, 0.1]))


def test_launching_counts_for_a_program_and_not_for_a_graph(device, best_ms):
    calls = [
        device.taking("many", lambda: 0.002, to_launch=lambda: 0.01),
        device.taking("one", lambda: 0.001, to_launch=lambda: 0.03),
    ]
    with_launching, alone = best_ms(calls)
    assert with_launching == pytest.approx([0.01, 0.03], rel=0.05)
    assert alone == pytest.approx([0.002, 0.001])


def test_launching_that_goes_on_while_the_device_computes_costs_nothing(device, best_ms):
    """In a row that nobody waits for, as calls are made, and as they are paid: the more of the two counts."""
    calls = [
        device.taking("a graph", lambda: 0.5, to_launch=lambda: 0.01),
        device.taking("a program", lambda: 0.4, to_launch=lambda: 0.15),
    ]
    assert best_ms(calls)[0] == pytest.approx([0.5, 0.4])


def test_who_waits_for_the_device_in_a_call_pays_for_both(device, best_ms):
    call = device.taking("waiting", lambda: 0.4, to_launch=lambda: 0.15)
    assert best_ms([lambda: (call(), device.synchronize())])[0] == pytest.approx([0.55])


def test_a_first_call_that_compiles_takes_nobodys_turns(device, best_ms):
    def compiled_first() -> float:
        return 0.1 if "compiling" in device.asked[:-1] else 2_000.0

    assert best_ms([device.taking("compiling", compiled_first)])[0] == pytest.approx([0.1])
    assert device.asked.count("compiling") == len(device.asked) > 100


def test_short_calls_are_timed_in_rows_and_all_of_them_in_turn(device, best_ms):
    best_ms([device.taking("one", lambda: 0.1), device.taking("other", lambda: 0.1)])
    assert device.asked[:26] == ["one", "other", "one", "one", "other", "other"] + ["one"] * 10 + ["other"] * 10
    assert device.asked.count("one") == device.asked.count("other")


def test_long_calls_are_timed_three_times(device, best_ms):
    assert best_ms([device.taking("long", lambda: 900.0)])[0] == pytest.approx([900.0])
    assert len(device.asked) == 1 + 3 * 2
