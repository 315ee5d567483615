"""The paper's protocol: on a simulated clock where its rules are tested, with a real judge where its verdicts are."""

import dataclasses
import json
import random
from collections.abc import Callable

import pytest

from tasks.judge import long
from tasks.judge.judge import Judge
from tasks.judge.timing import Round
from tasks.judge.verdict import Status, Verdict
from tasks.params import JudgeParams, LongParams
from tests.judge_builders import KERNELS, PARAMS, kernel

SAME = kernel(KERNELS / "honest/same.py")
WINDOW = LongParams(window_s=0.7)


class Clock:
    """Time passes only while rounds are taken."""

    def __init__(self, round_at: Callable[[float], Round], *, round_s: float) -> None:
        self.now_s = 100.0
        self._round_at = round_at
        self._round_s = round_s

    def __call__(self) -> float:
        return self.now_s

    def take_round(self) -> Round:
        taken = self._round_at(self.now_s - 100.0)
        self.now_s += self._round_s
        return taken


def window(
    round_at: Callable[[float], Round],
    *,
    params: LongParams = WINDOW,
    round_s: float = 0.01,
    on_progress: long.OnProgress = lambda share, words: None,
) -> long.Window:
    clock = Clock(round_at, round_s=round_s)
    return long.measure_window(clock.take_round, params, rng=random.Random(0), on_progress=on_progress, clock=clock)


def test_the_defaults_are_the_papers() -> None:
    params = JudgeParams()
    assert (params.tier, params.jump_speedup, params.jump_over_best) == ("screen", 3.0, 2.0)
    assert params.long == LongParams(window_s=1800.0, buckets=7, max_variance=0.005, second_look_tolerance=0.1)


def test_the_speedup_is_the_median_of_the_bucket_means() -> None:
    found = window(lambda at_s: Round(many=(1.0 + (3.0 if at_s < 0.1 else 0.0) + at_s, 1.0)))
    assert len(found.bucket_means) == 7
    assert found.bucket_means[0] > 4
    assert found.speedup.median == 1.44  # the mean of 1.4 to 1.49 is 1.445
    assert found.speedup.low <= found.speedup.median <= found.speedup.high


def test_a_drifting_speedup_has_a_large_variance() -> None:
    assert window(lambda at_s: Round(many=(1.0 + at_s, 1.0))).variance > LongParams().max_variance
    assert window(lambda at_s: Round(many=(1.0 + at_s / 10, 1.0))).variance < LongParams().max_variance


def test_many_calls_at_once_count_no_further_than_single_calls_support_them() -> None:
    found = window(lambda at_s: Round(many=(3.0, 1.0), single=(1.2, 1.0)))
    assert found.speedup.median == 1.2
    assert set(found.rounds.reference_ms) == {1.2}


def test_every_bucket_has_a_round_even_if_rounds_outlast_the_window() -> None:
    found = window(lambda at_s: Round(many=(2.0, 1.0)), round_s=5.0)
    assert found.num_rounds == 7
    assert found.speedup.median == 2.0


def test_few_of_the_rounds_are_kept_from_all_parts_of_the_window() -> None:
    params = LongParams(window_s=70.0)
    found = window(lambda at_s: Round(many=(1.0 + at_s, 1.0)), params=params)
    assert found.num_rounds >= 6_990
    assert len(found.rounds.reference_ms) == 7 * long.KEPT_ROUNDS
    assert min(found.rounds.reference_ms) < 3 < 69 < max(found.rounds.reference_ms)


def test_progress_is_told_and_may_end_the_window() -> None:
    told: list[float] = []
    window(
        lambda at_s: Round(many=(2.0, 1.0)),
        params=LongParams(window_s=10.0),
        on_progress=lambda *at: told.append(at[0]),
    )
    assert len(told) in (8, 9, 10)
    assert told == sorted(told)
    assert told[-1] <= 1

    def stop(share: float, words: str) -> None:
        raise KeyboardInterrupt(words)

    with pytest.raises(KeyboardInterrupt, match="bucket 1 of 7"):
        window(lambda at_s: Round(many=(2.0, 1.0)), params=LongParams(window_s=10.0), on_progress=stop)


@pytest.mark.parametrize(
    ("speedup", "rounded"),
    [(1.118, 1.11), (0.992, 1.00), (0.985, 0.99), (1.0, 1.0), (1.005, 1.0), (1.12, 1.12), (2.3, 2.3), (0.57, 0.57)],
)
def test_rounding_is_towards_one(speedup: float, rounded: float) -> None:
    assert long.rounded_towards_one(speedup) == rounded


def judged_long(**changes: object) -> Verdict:
    limits = dataclasses.replace(LongParams(window_s=1.5, buckets=3), **changes)
    with Judge(dataclasses.replace(PARAMS, tier="long", long=limits)) as judge:
        return judge.judge(SAME.problem, SAME.candidate, seed=0)


def test_a_long_verdict_carries_its_bucket_means_and_few_rounds() -> None:
    verdict = judged_long(max_variance=1e9)
    assert verdict.status is Status.CORRECT, verdict.detail
    (check,) = [check for check in verdict.checks if check.name == "bucket_means"]
    assert check.passed
    assert check.evidence.count(".") >= 3
    assert verdict.timing is not None
    assert verdict.timing.settled is not None
    assert len(verdict.timing.reference_ms) <= 3 * long.KEPT_ROUNDS
    assert verdict.speedup == round(verdict.timing.settled.median, 2)
    assert Verdict.from_json(json.loads(json.dumps(verdict.to_json(), allow_nan=False))) == verdict


def test_bucket_means_that_vary_too_much_make_an_unstable_verdict() -> None:
    verdict = judged_long(max_variance=1e-12)
    assert verdict.status is Status.UNSTABLE
    assert "variance" in verdict.detail
    assert [check.name for check in verdict.checks if not check.passed] == ["bucket_means"]


def test_a_long_judgement_can_be_stopped() -> None:
    def stop(share: float, words: str) -> None:
        raise KeyboardInterrupt

    limits = dataclasses.replace(PARAMS, tier="long")
    with Judge(limits) as judge, pytest.raises(KeyboardInterrupt):
        judge.judge(SAME.problem, SAME.candidate, seed=0, on_progress=stop)
