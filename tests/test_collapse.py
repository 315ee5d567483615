"""A collapse of entropy or diversity is told once, when it has lasted, and again only after a recovery."""

import dataclasses

import pytest

from tasks.training.collapse import CollapseWatch
from tests.test_grpo import PARAMS

PARAMS = dataclasses.replace(PARAMS, entropy_floor=0.1, distinct_floor=0.5)


def warnings(entropies: list[float], distinct: float = 1.0) -> list[list[str]]:
    watch = CollapseWatch(PARAMS)
    return [watch.note(step, {"entropy": each, "distinct": distinct}) for step, each in enumerate(entropies, start=1)]


def test_a_fall_that_lasts_is_told_once_with_its_numbers_and_its_remedy():
    said = warnings([1.0] + [0.01] * 12)
    assert [step for step, words in enumerate(said, start=1) if words] == [6]
    ((words,),) = [words for words in said if words]
    assert "step 6: the policy collapses: entropy is 0.01 over 5 steps" in words
    assert "contrastive_rl.entropy_floor (0.1)" in words
    assert "lower learning_rate" in words


@pytest.mark.parametrize(
    ("entropies", "count"),
    [
        pytest.param([0.01] * 4, 0, id="too short to tell"),
        pytest.param([1.0, 0.0] * 10, 0, id="single steps"),
        pytest.param([0.1] * 10, 0, id="at the floor"),
        pytest.param([0.01] * 5 + [1.0] * 5 + [0.01] * 5, 2, id="twice"),
    ],
)
def test_what_is_told(entropies, count):
    assert sum(map(len, warnings(entropies))) == count


def test_diversity_has_a_floor_of_its_own():
    said = [words for step in warnings([1.0] * 5, distinct=0.4) for words in step]
    assert len(said) == 1
    assert "contrastive_rl.distinct_floor (0.5)" in said[0]


def test_whether_it_is_collapsed_is_known_at_every_step():
    watch = CollapseWatch(PARAMS)
    states = []
    for entropy in [0.01] * 6 + [5.0]:
        watch.note(1, {"entropy": entropy, "distinct": 1.0})
        states.append(watch.is_collapsed)
    assert states == [False] * 4 + [True, True, False]


def test_a_step_without_an_entropy_is_none_of_the_five():
    watch = CollapseWatch(PARAMS)
    for step in range(9):
        assert watch.note(step, {"distinct": 1.0}) == []
