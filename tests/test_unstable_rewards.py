"""Right outputs whose timing did not settle: no verdict on speed, so that they earn nothing and cost nothing."""

from collections.abc import Sequence

import pytest

from tasks.history.exemplars import ExemplarPool
from tasks.judge.verdict import Status, Verdict
from tasks.training.rewards import RewardScale
from tasks.training.rollouts import Completion, Rollout, RolloutScorer, rollout_metrics
from tasks.variants.candidate import Candidate
from tests.test_grpo import train
from tests.training_builders import verdict

PROBLEM_ID = "level1/one"
SPEEDUPS = {"fast\n": 4.0, "usual\n": 1.0}
CLIP = 1.5


def judge(candidates: Sequence[Candidate]) -> list[Verdict]:
    """Texts that begin with "noisy" are unstable, and those without a speedup wrong."""
    return [
        verdict(
            each,
            speedup=SPEEDUPS.get(each.source),
            failure=Status.UNSTABLE if each.source.startswith("noisy") else Status.WRONG_OUTPUT,
        )
        for each in candidates
    ]


def scorer(*, novelty_bonus: float = 0.0) -> RolloutScorer:
    return RolloutScorer(
        judge=judge,
        pool=ExemplarPool(),
        scale=RewardScale(clip=CLIP),
        style="compact",
        group_size=3,
        novelty_bonus=novelty_bonus,
    )


def scored(scoring: RolloutScorer, *texts: str) -> list[Rollout]:
    asked = [Completion(problem_id=PROBLEM_ID, prompt="p", exemplar_ids=(), text=text) for text in texts]
    return scoring.score(asked)


def rewards(*texts: str, novelty_bonus: float = 0.0) -> list[float]:
    return [rollout.reward for rollout in scored(scorer(novelty_bonus=novelty_bonus), *texts)]


@pytest.mark.parametrize("others", [("fast", "usual"), ("usual", "wrong"), ("wrong", "wrong too")], ids=" and ".join)
def test_unstable_earns_the_mean_of_the_others_of_its_group(others):
    first, unstable, last = rewards(others[0], "noisy", others[1])
    assert unstable == pytest.approx((first + last) / 2)
    assert [first, last] == pytest.approx(rewards(*others))


def test_unstable_is_neither_shown_nor_part_of_what_is_usual():
    scoring = scorer()
    scored(scoring, "fast", "noisy", "noisy too")
    assert [each.source for each in scoring.pool.of(PROBLEM_ID)] == ["fast\n"]
    assert scoring.scale.state_dict()[PROBLEM_ID][0] == 1


def test_unstable_earns_no_bonus_for_being_new_and_takes_none_from_others():
    assert rewards("fast", "noisy", "wrong", novelty_bonus=0.25)[0] == pytest.approx(CLIP)
    usual, unstable, _ = rewards("usual", "noisy", "wrong", novelty_bonus=0.25)
    assert usual == pytest.approx(0.25)
    assert unstable == pytest.approx((0.25 - CLIP) / 2)


def test_a_group_of_nothing_else_earns_nothing():
    assert rewards("noisy", "noisy too", "noisy", "usual", "wrong", "wrong")[:3] == [0.0, 0.0, 0.0]


def test_metrics_tell_unstable_from_wrong():
    metrics = rollout_metrics(scored(scorer(), "usual", "noisy", "wrong"), group_size=3)
    assert metrics["correct"] == metrics["unstable"] == pytest.approx(1 / 3)
    assert metrics["speedup"] == 1.0


def test_training_on_groups_of_nothing_but_unstable_leaves_the_policy_as_it_was(tmp_path):
    def unsettled(candidates: Sequence[Candidate]) -> list[Verdict]:
        return [verdict(each, speedup=None, failure=Status.UNSTABLE) for each in candidates]

    rows, _ = train(tmp_path, judge=unsettled, steps=2)
    assert [(row["reward"], row["unstable"], row["grad_norm"]) for row in rows] == [(0.0, 1.0, 0.0)] * 2
