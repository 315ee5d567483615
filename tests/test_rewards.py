"""Rewards: normalised log-speedups, clipped, with failures at the bottom."""

import json
import math
import random

import pytest

from tasks.training.rewards import RewardScale, novelty_bonuses

CLIP = 1.5


def scale_of(*speedups: float) -> RewardScale:
    scale = RewardScale(clip=CLIP)
    for speedup in speedups:
        scale.observe("problem", speedup)
    return scale


@pytest.mark.parametrize(
    ("speedup", "reward"),
    [(1.0, 0.0), (2.0, 1.0), (0.5, -1.0), (100.0, CLIP), (0.01, -CLIP + 0.5), (None, -CLIP)],
    ids=["no change", "twice as fast", "half as fast", "very fast", "very slow", "failure"],
)
def test_a_problem_never_seen_is_scaled_by_the_prior(speedup, reward):
    assert RewardScale(clip=CLIP).reward("problem", speedup) == pytest.approx(reward)


@pytest.mark.parametrize("factor", [1.1, 1.5, 1.9])
def test_a_speedup_and_a_slowdown_by_the_same_factor_are_equally_far_from_the_mean(factor):
    scale = scale_of(*[0.5, 2.0] * 20)
    assert scale.reward("problem", factor) == pytest.approx(-scale.reward("problem", 1 / factor))


def test_with_many_observations_the_prior_is_forgotten():
    rng = random.Random(0)
    logs = [rng.gauss(math.log(3.0), 0.4) for _ in range(4000)]
    mean, spread = scale_of(*map(math.exp, logs)).mean_and_spread("problem")
    assert mean == pytest.approx(math.log(3.0), abs=0.03)
    assert spread == pytest.approx(0.4, abs=0.03)


def test_one_lucky_speedup_hardly_moves_the_mean():
    mean, _ = scale_of(*[1.0] * 19, 60.0).mean_and_spread("problem")
    assert math.exp(mean) < 1.25


def test_noise_around_one_speedup_is_not_blown_up_into_rewards():
    scale = scale_of(*[0.999, 1.001] * 500)
    assert abs(scale.reward("problem", 1.002)) < 0.1


def test_problems_do_not_disturb_each_other():
    scale = scale_of(8.0, 9.0, 10.0)
    assert scale.reward("other", 2.0) == RewardScale(clip=CLIP).reward("other", 2.0)
    assert scale.reward("problem", 2.0) < scale.reward("other", 2.0)


def test_the_order_of_observations_does_not_matter():
    speedups = [0.7, 1.0, 1.3, 5.0, 2.2]
    assert scale_of(*speedups).reward("problem", 1.7) == pytest.approx(scale_of(*speedups[::-1]).reward("problem", 1.7))


def test_a_scale_goes_through_json_unchanged():
    scale = scale_of(0.7, 1.3, 5.0)
    again = scale_of(9.0)
    again.load_state_dict(json.loads(json.dumps(scale.state_dict())))
    assert again == scale


@pytest.mark.parametrize(
    ("sources", "are_correct", "bonuses"),
    [
        ("abc", [True, True, True], [1.0, 1.0, 1.0]),
        ("aab", [True, True, True], [0.0, 0.0, 1.0]),
        ("abc", [True, False, True], [1.0, 0.0, 1.0]),
        ("aaa", [True, True, True], [0.0, 0.0, 0.0]),
        ("", [], []),
    ],
    ids=["all different", "two alike", "one wrong", "all alike", "empty group"],
)
def test_only_correct_texts_their_group_holds_once_earn_the_bonus(sources, are_correct, bonuses):
    assert novelty_bonuses(list(sources), are_correct, bonus=1.0) == bonuses
