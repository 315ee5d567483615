"""Times are reduced to a speedup by pure functions."""

import random

import pytest

from tasks.judge import timing
from tasks.judge.timing import Rounds


def measured(pair, *, rounds: int = 9, calls: int = 2) -> Rounds:
    return timing.measure_until_settled(pair, rounds=rounds, calls=calls, rng=random.Random(0))


def test_a_steady_ratio_takes_one_batch() -> None:
    taken = measured(lambda reference_first: (2.0, 1.0))
    assert taken.reference_ms == (2.0,) * 9
    assert taken.candidate_ms == (1.0,) * 9


def test_a_restless_ratio_takes_all_batches_and_stays_uncertain() -> None:
    rng = random.Random(1)
    taken = measured(lambda reference_first: (rng.uniform(1.0, 9.0), 1.0), calls=1)
    assert len(taken.candidate_ms) == 9 * timing.MAX_BATCHES
    assert taken.standard_error > timing.UNSTABLE_ERROR


def test_one_stalled_call_does_not_count() -> None:
    times = iter([(2.0, 1.0), (2.0, 50.0)] * 9)
    assert measured(lambda reference_first: next(times)).candidate_ms == (1.0,) * 9


def test_both_orders_occur() -> None:
    orders = []

    def pair(reference_first: bool) -> tuple[float, float]:
        orders.append(reference_first)
        return 1.0, 1.0

    measured(pair)
    assert set(orders) == {True, False}


@pytest.mark.parametrize(
    ("measured_ms", "net_ms"),
    [
        pytest.param(5.2, 5.0, id="long"),
        pytest.param(0.2, 0.02, id="as short as an exchange"),
        pytest.param(0.1, 0.02, id="shorter than an exchange"),
        pytest.param(-3.0, 0.02, id="the clock was set back"),
    ],
)
def test_what_an_exchange_takes_is_not_counted(measured_ms: float, net_ms: float) -> None:
    assert timing.net_ms(measured_ms, 0.2) == pytest.approx(net_ms)


def test_a_net_time_is_never_below_the_resolution() -> None:
    assert timing.net_ms(0.0, 0.0) == timing.RESOLUTION_MS


def test_the_exchange_is_a_low_quantile_of_its_samples() -> None:
    assert timing.exchange_ms([1.0, 1.0, 1.0, 1.0, 30.0]) == 1.0


def test_slow_programs_get_fewer_rounds_but_enough() -> None:
    assert timing.affordable_rounds(9, round_ms=10.0, budget_s=1.0) == 9
    assert timing.affordable_rounds(9, round_ms=150.0, budget_s=1.0) == 6
    assert timing.affordable_rounds(9, round_ms=5_000.0, budget_s=1.0) == timing.MIN_ROUNDS
