"""Which of a problem's correct texts are timed once more before one of them is called the best."""

import pytest

from flows.evaluate import contending

SPEEDUPS = {"slow": 0.9, "best": 2.0, "near": 1.8, "far": 1.5}


@pytest.mark.parametrize(
    ("count", "chosen"), [(1, ["best"]), (2, ["best", "near"]), (4, ["best", "near"])], ids="{0} at most".format
)
def test_the_fastest_and_those_that_may_be_faster_after_all_are_timed_again(count: int, chosen: list[str]):
    assert contending(SPEEDUPS, count=count, tolerance=0.2) == chosen


def test_texts_that_are_equally_fast_are_all_timed_again():
    assert contending({"one": 1.0, "other": 1.0}, count=2, tolerance=0.1) == ["one", "other"]


def test_a_problem_without_a_correct_text_has_no_contender():
    assert contending({}, count=2, tolerance=0.2) == []
