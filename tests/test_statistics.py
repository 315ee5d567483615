"""The numbers people quote, against tables worked out by hand."""

import random

import pytest

from tasks.report import statistics

WORKED = [
    # speedups, geometric mean, mean, median, quartiles, maximum
    pytest.param([], None, None, None, None, None, id="none at all"),
    pytest.param([None, None], None, None, None, None, None, id="none correct"),
    pytest.param([3.0], 3.0, 3.0, 3.0, (3.0, 3.0, 3.0), 3.0, id="a single one"),
    pytest.param([None, 3.0], 3.0, 3.0, 3.0, (3.0, 3.0, 3.0), 3.0, id="a single one beside a failure"),
    pytest.param([2.0, 0.5], 1.0, 1.25, 1.25, (0.875, 1.25, 1.625), 2.0, id="twice and half as fast cancel"),
    pytest.param([1.0, 2.0, 4.0, None], 2.0, 7 / 3, 2.0, (1.5, 2.0, 3.0), 4.0, id="a failure is left out"),
    pytest.param([1.0, 1.0, 1.0, 1.0, 1024.0], 4.0, 205.6, 1.0, (1.0, 1.0, 1.0), 1024.0, id="one huge one"),
]


@pytest.mark.parametrize(("speedups", "geometric_mean", "mean", "median", "quartiles", "maximum"), WORKED)
def test_averages(speedups, geometric_mean, mean, median, quartiles, maximum):
    assert statistics.geometric_mean(speedups) == pytest.approx(geometric_mean)
    assert statistics.mean(speedups) == pytest.approx(mean)
    assert statistics.median(speedups) == pytest.approx(median)
    assert statistics.quartiles(speedups) == pytest.approx(quartiles)
    assert statistics.maximum(speedups) == pytest.approx(maximum)


@pytest.mark.parametrize(
    ("speedups", "p", "expected"),
    [
        pytest.param([], 1.0, 0.0, id="no problems"),
        pytest.param([None, None], 0.0, 0.0, id="nothing solved"),
        pytest.param([0.5, 1.0, 2.0, None], 0.0, 0.75, id="fast_0 is the share solved"),
        pytest.param([0.5, 1.0, 2.0, None], 1.0, 0.25, id="exactly as fast is not faster"),
        pytest.param([0.5, 1.0, 2.0, None], 2.0, 0.0, id="exactly twice as fast is not faster than that"),
        pytest.param([1.3], 1.2, 1.0, id="a single problem"),
    ],
)
def test_fast_p(speedups, p, expected):
    assert statistics.fast_p(speedups, p=p) == expected


def test_a_problem_without_a_correct_candidate_counts_as_the_reference_only_when_asked():
    speedups = [4.0, None]
    assert statistics.geometric_mean(speedups) == pytest.approx(4.0)
    assert statistics.geometric_mean(statistics.or_reference(speedups)) == pytest.approx(2.0)


def test_counting_failures_as_the_reference_keeps_slow_candidates_slow():
    assert statistics.or_reference([0.5, None, 2.0]) == [0.5, 1.0, 2.0]


def intervals(*, seed):
    by_problem = {f"level1/p{index}": [1.0 + index / 10, 2.0] for index in range(20)}
    later = {problem: [speedup * 1.5 for speedup in speedups] for problem, speedups in by_problem.items()}
    return (
        statistics.share_interval([1, 2, 0, 4] * 5, [4] * 20, resamples=200, seed=seed),
        statistics.geometric_mean_interval(by_problem, resamples=200, seed=seed),
        statistics.geometric_mean_ratio_interval(by_problem, {**later, "x": [9.0]}, resamples=200, seed=seed),
    )


def test_equal_seeds_give_equal_intervals_and_other_seeds_others():
    assert intervals(seed=1) == intervals(seed=1)
    assert all(one != other for one, other in zip(intervals(seed=1), intervals(seed=2), strict=True))


def test_an_interval_holds_its_estimate():
    by_problem = {"a": [1.0, 2.0], "b": [4.0], "c": [], "d": [0.5, 3.0]}
    estimate = statistics.geometric_mean([s for speedups in by_problem.values() for s in speedups])
    interval = statistics.geometric_mean_interval(by_problem, resamples=500, seed=0)
    assert interval.low < estimate < interval.high


@pytest.mark.parametrize(
    "by_problem",
    [
        pytest.param({}, id="no problems"),
        pytest.param({"a": [1.0, 2.0, 3.0]}, id="one problem, many samples"),
        pytest.param({"a": [2.0], "b": []}, id="two problems, one solved"),
    ],
)
def test_fewer_than_two_problems_give_no_interval(by_problem):
    assert statistics.geometric_mean_interval(by_problem, resamples=100, seed=0) is None
    assert statistics.geometric_mean_ratio_interval(by_problem, by_problem, resamples=100, seed=0) is None


def test_one_problem_gives_no_interval_of_a_share():
    assert statistics.share_interval([3], [4], resamples=100, seed=0) is None


def test_more_samples_of_the_same_problems_do_not_narrow_an_interval():
    once = {"a": [1.0], "b": [2.0], "c": [4.0], "d": [8.0]}
    often = {problem: speedups * 50 for problem, speedups in once.items()}
    narrow = statistics.geometric_mean_interval(often, resamples=400, seed=3)
    wide = statistics.geometric_mean_interval(once, resamples=400, seed=3)
    assert (narrow.low, narrow.high) == pytest.approx((wide.low, wide.high))


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    """200 worlds of 30 problems whose log speedup has mean 0: percentile intervals cover a bit less."""
    draw = random.Random(0)
    covered = 0
    for world in range(200):
        by_problem = {}
        for index in range(30):
            difficulty = draw.gauss(0, 0.5)
            by_problem[str(index)] = [2.0 ** (difficulty + draw.gauss(0, 0.1)) for _ in range(4)]
        interval = statistics.geometric_mean_interval(by_problem, resamples=200, seed=world)
        covered += interval.low <= 1.0 <= interval.high
    assert 0.88 <= covered / 200 <= 0.98


def test_the_ratio_of_two_stages_is_that_of_their_geometric_means():
    earlier, later = {"a": [1.0, 4.0], "b": []}, {"a": [4.0], "b": [9.0]}
    assert statistics.geometric_mean_ratio(earlier, later) == pytest.approx(3.0)
    assert statistics.geometric_mean_ratio(earlier, {"a": []}) is None


def test_pairing_sees_a_gain_that_the_spread_between_problems_would_hide():
    earlier = {f"p{index}": [2.0**index] for index in range(8)}
    later = {problem: [speedup * 1.1 for speedup in speedups] for problem, speedups in earlier.items()}
    paired = statistics.geometric_mean_ratio_interval(earlier, later, resamples=300, seed=0)
    assert (paired.low, paired.high) == pytest.approx((1.1, 1.1))
    alone = [statistics.geometric_mean_interval(stage, resamples=300, seed=0) for stage in (earlier, later)]
    assert alone[0].high > alone[1].low
