"""All numbers of the field at once, and speedups over other baselines than the one that was timed beside."""

import math
import random

import pytest

from tasks.judge.verdict import Speedup
from tasks.report.baselines import EVEN, best_baseline, over
from tasks.report.paper import paper_rows
from tasks.report.quoted import HEADER, Missing, quoted

BOOTSTRAP = {"resamples": 300, "seed": 0}


def speedup(median, *, width=1.0):
    return Speedup(median=median, low=median / width, high=median * width)


@pytest.mark.parametrize(
    ("missing", "problems", "mean", "geomean", "median", "fast"),
    [
        pytest.param(Missing.REFERENCE, 4, 8.5 / 4, 5**0.25, 1.5, [0.75, 0.5, 0.5, 0.25], id="as the reference"),
        pytest.param(Missing.LEFT_OUT, 3, 2.5, 5 ** (1 / 3), 2.0, [1.0, 2 / 3, 2 / 3, 1 / 3], id="left out"),
    ],
)
def test_missing_kernels_count_as_the_caller_says(missing, problems, mean, geomean, median, fast):
    found = quoted([5.0, 2.0, 0.5, None], missing=missing, **BOOTSTRAP)
    assert (found.problems, found.missing) == (problems, 1)
    assert found.mean == pytest.approx(mean)
    assert found.geomean == pytest.approx(geomean)
    assert found.quartiles[1] == pytest.approx(median)
    assert found.maximum == 5.0
    assert list(found.fast.values()) == pytest.approx(fast)


def test_every_interval_holds_its_number():
    draw = random.Random(1)
    found = quoted([2 ** draw.gauss(0.5, 1) for _ in range(60)], missing=Missing.REFERENCE, **BOOTSTRAP)
    for number, interval in (
        (found.mean, found.mean_interval),
        (found.geomean, found.geomean_interval),
        (found.quartiles[1], found.median_interval),
    ):
        assert interval.low < number < interval.high
        assert interval.high / interval.low < 3


@pytest.mark.parametrize("speedups", [[], [None, None], [2.0]], ids=["no problems", "nothing solved", "one problem"])
def test_few_problems_have_numbers_without_intervals(speedups):
    found = quoted(speedups, missing=Missing.LEFT_OUT, **BOOTSTRAP)
    assert found.mean_interval is found.geomean_interval is found.median_interval is None
    assert len(found.cells) == len(HEADER)


def test_over_eager_a_speedup_is_what_it_was():
    timed = Speedup(median=3.0, low=2.5, high=3.2)
    found = over(timed, EVEN)
    assert (found.median, found.low, found.high) == pytest.approx((3.0, 2.5, 3.2))


def test_the_interval_of_a_ratio_is_wider_than_either_and_narrower_than_both_together():
    found = over(speedup(3.0, width=1.1), speedup(1.5, width=1.1))
    assert found.median == pytest.approx(2.0)
    assert 2.0 * 1.1 < found.high < 2.0 * 1.1**2
    assert 2.0 / 1.1**2 < found.low < 2.0 / 1.1


def test_the_interval_of_a_ratio_covers_the_truth_about_as_often_as_it_says():
    """Two independent speedups with errors in log space, each with its 90 % interval."""
    draw, spread, covered = random.Random(0), 0.05, 0
    width = math.exp(1.645 * spread)
    for _ in range(2000):
        candidate = speedup(3.0 * math.exp(draw.gauss(0, spread)), width=width)
        baseline = speedup(1.5 * math.exp(draw.gauss(0, spread)), width=width)
        found = over(candidate, baseline)
        covered += found.low <= 2.0 <= found.high
    assert 0.88 < covered / 2000 < 0.92


def test_the_best_baseline_is_the_fastest_that_works_on_the_problem_and_eager_at_least():
    baselines = {"compile": {"a": speedup(0.5), "b": speedup(2.0)}, "cuda_graph": {"b": speedup(3.0)}}
    assert best_baseline(baselines, "a") == ("eager", EVEN)
    assert best_baseline(baselines, "b") == ("cuda_graph", speedup(3.0))
    assert best_baseline({}, "a") == ("eager", EVEN)


def test_the_papers_rows_are_found_by_the_name_of_the_file():
    assert {(row.baseline, row.group): row.mean for row in paper_rows("h100")}["eager", "level 2"] == 6.41
    assert len(paper_rows("A100")) == 16
    assert paper_rows("my-laptop") == []
