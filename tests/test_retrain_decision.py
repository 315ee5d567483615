"""Who becomes champion: the paired tests and the rule that reads them."""

import itertools
import random

import pytest

from tasks.problems.problem import Split
from tasks.report.comparison import EXACT_UP_TO, Bout, Decision, Judgement, Skill, decide, paired_tests, sign_flip_p

SOLVED = Skill(num_samples=8, num_correct=8, speedup=2.0)
FAILED = Skill(num_samples=8, num_correct=0, speedup=None)
SLOW = Skill(num_samples=8, num_correct=8, speedup=0.5)


def bouts(
    challenger: Skill, champion: Skill | None, *, count: int, split: Split = Split.HELD_OUT, first: int = 0
) -> list[Bout]:
    return [
        Bout(problem_id=f"level1/p{number}", split=split, challenger=challenger, champion=champion)
        for number in range(first, first + count)
    ]


def decision(pairs: list[Bout], *splits: Split) -> Judgement:
    return decide(pairs, deciding_splits=splits or (Split.HELD_OUT,), alpha=0.05, min_share_correct=0.25, seed=0)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        pytest.param(bouts(SOLVED, FAILED, count=8), Decision.PROMOTED, id="better in both"),
        pytest.param(bouts(FAILED, SOLVED, count=8), Decision.REGRESSED, id="worse in both"),
        pytest.param(bouts(SOLVED, SOLVED, count=50), Decision.KEPT, id="equal"),
        pytest.param(bouts(SOLVED, SLOW, count=8), Decision.PROMOTED, id="as often right, and faster"),
        pytest.param(bouts(SLOW, FAILED, count=8), Decision.KEPT, id="right more often, and slower than the reference"),
        pytest.param(bouts(SOLVED, FAILED, count=5), Decision.KEPT, id="too few problems to tell"),
        pytest.param(
            [*bouts(SOLVED, FAILED, count=4), *bouts(FAILED, SOLVED, count=4, first=4)],
            Decision.KEPT,
            id="half and half",
        ),
        pytest.param(bouts(SOLVED, FAILED, count=30, split=Split.TRAIN), Decision.KEPT, id="better on train alone"),
        pytest.param(bouts(SOLVED, None, count=1), Decision.FIRST, id="first, and sound"),
        pytest.param(bouts(FAILED, None, count=30), Decision.UNSOUND, id="first, and below the floor"),
        pytest.param([], Decision.UNSOUND, id="no problem at all"),
    ],
)
def test_the_rule_decides(pairs: list[Bout], expected: Decision) -> None:
    assert decision(pairs).decision is expected


def test_train_problems_decide_where_that_is_asked_for() -> None:
    pairs = bouts(SOLVED, FAILED, count=8, split=Split.TRAIN)
    assert decision(pairs, *Split).decision is Decision.PROMOTED


def test_the_reason_names_the_numbers_it_rests_on() -> None:
    reason = decision(bouts(SOLVED, FAILED, count=8)).reason
    assert "better in speedup and better in share correct" in reason
    assert "8 problems, 8 of them held out" in reason
    assert "speedup 2.000 times" in reason
    assert "share correct +100.0%" in reason


def test_a_failure_counts_as_the_reference() -> None:
    (speed, _) = paired_tests(bouts(FAILED, Skill(num_samples=8, num_correct=4, speedup=1.0), count=4), seed=0)
    assert speed.difference == 0.0
    assert speed.num_differing == 0


@pytest.mark.parametrize("count", [1, 3, 6, EXACT_UP_TO])
def test_the_exact_probability_is_that_of_all_signs_together(count: int) -> None:
    rng = random.Random(count)
    differences = [rng.gauss(0.2, 1.0) for _ in range(count)]
    total = sum(differences)
    flipped = [
        sum(sign * d for sign, d in zip(signs, differences, strict=True))
        for signs in itertools.product((1, -1), repeat=count)
    ]
    expected = sum(value >= total - 1e-9 for value in flipped) / len(flipped)
    assert sign_flip_p(differences, seed=0) == pytest.approx(expected)


def test_equal_policies_are_rarely_told_apart() -> None:
    """Of 400 pairs of policies that differ by chance alone, about alpha / 2 are promoted for their share correct."""
    rng = random.Random(5)
    promoted = 0
    for _ in range(400):
        pairs = [
            Bout(
                problem_id=f"level1/p{number}",
                split=Split.HELD_OUT,
                challenger=Skill(num_samples=8, num_correct=rng.randint(0, 8), speedup=None),
                champion=Skill(num_samples=8, num_correct=rng.randint(0, 8), speedup=None),
            )
            for number in range(12)
        ]
        promoted += decision(pairs).decision is Decision.PROMOTED
    assert promoted <= 400 * 0.025 + 3 * (400 * 0.025 * 0.975) ** 0.5


def test_many_problems_are_judged_alike_under_equal_seeds() -> None:
    differences = [0.1] * 30 + [-0.1] * 12
    first = sign_flip_p(differences, seed=3)
    assert first == sign_flip_p(differences, seed=3)
    assert 0 < first < 0.01
    assert sign_flip_p([-d for d in differences], seed=3) > 0.99
