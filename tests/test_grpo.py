"""Contrastive reinforcement learning: prompts from the growing pool, rewards from verdicts, resumable."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tasks.history.exemplars import ExemplarPool
from tasks.history.records import Cost
from tasks.judge.verdict import Verdict
from tasks.params import ContrastiveRLParams, ExemplarsParams
from tasks.training import checkpoints as checkpointing
from tasks.training.checkpoints import checkpointed_steps, newest_checkpoint
from tasks.training.grpo import train_grpo
from tasks.training.policy import Policy
from tasks.training.rewards import RewardScale
from tasks.training.rollouts import Completion, Rollout, RolloutScorer, rollout_metrics
from tasks.variants.candidate import Candidate
from tests.training_builders import SCALED, exemplar, policy, problem, verdict

PARAMS = ContrastiveRLParams(
    steps=4,
    prompts_per_step=2,
    group_size=4,
    temperature=1.0,
    learning_rate=1e-2,
    exemplars="buckets",
    reward_clip=1.5,
    kl_beta=0.0,
    clip_epsilon=0.2,
    novelty_bonus=0.1,
)
PROBLEMS = [
    problem("one"),
    problem("two", SCALED.replace("2.0", "3.0")),
    problem("three", SCALED.replace("2.0", "4.0")),
]


def talkative(**changes) -> Policy:
    """A policy whose random completions end soon, as a trained one's do."""
    made = policy(**changes)
    made.model.generation_config.eos_token_id = list(range(60, 200))
    return made


def judge_by_length(candidates: Sequence[Candidate]) -> list[Verdict]:
    """Every other length of text is correct, and the longer the faster."""
    return [
        verdict(candidate, speedup=1.0 + len(candidate.source) / 50 if len(candidate.source) % 2 else None)
        for candidate in candidates
    ]


def train(
    folder: Path,
    *,
    pool=None,
    judge=judge_by_length,
    made=None,
    on_step=None,
    on_rollouts=None,
    islands=None,
    **changes,
):
    steps: list[list[Rollout]] = []

    def note(step: int, rollouts: Sequence[Rollout], cost: Cost) -> None:
        steps.append(list(rollouts))
        if on_rollouts:
            on_rollouts(step, rollouts, cost)

    rows = train_grpo(
        made or talkative(),
        PROBLEMS,
        ExemplarPool() if pool is None else pool,
        judge,
        dataclasses.replace(PARAMS, **changes),
        exemplars=ExemplarsParams(count=2, bucket_width=0.5, bucket_temperature=1.0),
        checkpoints=folder,
        seed=5,
        on_step=on_step,
        on_rollouts=note,
        islands=islands,
    )
    return rows, steps


def problems_of(steps: list[list[Rollout]]) -> list[list[str]]:
    return [[rollout.completion.problem_id for rollout in rollouts[::4]] for rollouts in steps]


class Killed(Exception):
    """Stands for a kill between two steps."""


def test_all_rows_of_a_group_answer_one_prompt(tmp_path):
    _, steps = train(tmp_path)
    for rollouts in steps:
        assert len(rollouts) == 8
        for group in (rollouts[:4], rollouts[4:]):
            assert len({rollout.completion.prompt for rollout in group}) == 1
    asked = [name for step in problems_of(steps) for name in step]
    assert len(asked) == 8
    assert sorted(asked[:3]) == sorted(asked[3:6]) == sorted(each.problem_id for each in PROBLEMS)


def test_what_was_just_found_is_shown_in_later_prompts(tmp_path):
    pool = ExemplarPool()
    _, steps = train(tmp_path, pool=pool, exemplars="random", steps=6)
    found: dict[str, set[str]] = {}
    shown = 0
    for rollouts in steps:
        for rollout in rollouts:
            exemplar_ids = rollout.completion.exemplar_ids
            shown += len(exemplar_ids)
            assert set(exemplar_ids) <= found.get(rollout.completion.problem_id, set())
        for rollout in rollouts:
            if rollout.verdict.is_correct:
                found.setdefault(rollout.completion.problem_id, set()).add(rollout.candidate.candidate_id)
    assert shown > 0
    assert len(pool) == sum(map(len, found.values()))


def test_prompts_show_exemplars_of_the_pool_with_their_speedups(tmp_path):
    pool = ExemplarPool()
    pool.add("level1/one", exemplar("fast = 1\n", speedup=3.0))
    pool.add("level1/one", exemplar("slow = 1\n", speedup=1.0))
    _, steps = train(tmp_path, pool=pool, judge=_all_wrong)
    for rollout in (rollout for rollouts in steps for rollout in rollouts):
        is_shown = rollout.completion.problem_id == "level1/one"
        assert ("# 1x\nslow = 1\n# 3x\nfast = 1\n# faster\n" in rollout.completion.prompt) == is_shown


def test_without_exemplars_prompts_are_bare(tmp_path):
    _, steps = train(tmp_path, exemplars="none")
    assert all(rollout.completion.exemplar_ids == () for rollouts in steps for rollout in rollouts)


def test_a_row_says_what_a_step_found(tmp_path):
    rows, steps = train(tmp_path)
    for row, rollouts in zip(rows, steps, strict=True):
        assert {"step", "loss", "entropy", "reward", "correct", "unstable", "distinct"} <= set(row)
        for name, value in rollout_metrics(rollouts, group_size=4).items():
            assert row[name] == pytest.approx(value, rel=1e-5)


def test_training_raises_the_reward(tmp_path):
    def judge_by_first_letter(candidates: Sequence[Candidate]) -> list[Verdict]:
        return [verdict(each, speedup=4.0 if each.source[:1].isalpha() else None) for each in candidates]

    rows, _ = train(tmp_path, judge=judge_by_first_letter, exemplars="none", novelty_bonus=0.0, steps=30, group_size=16)
    early, late = (sum(row["correct"] for row in part) for part in (rows[:3], rows[-3:]))
    assert late > early


def test_the_penalty_on_divergence_is_measured_against_the_start(tmp_path):
    rows, _ = train(tmp_path, kl_beta=0.1)
    assert rows[0]["kl"] == pytest.approx(0.0, abs=1e-6)
    assert rows[-1]["kl"] > 1e-6
    assert "kl" not in train(tmp_path / "free")[0][0]


def test_completions_that_were_cut_off_are_learnt_from_too(tmp_path):
    made, untouched = policy(), policy()
    _, steps = train(tmp_path, made=made)
    assert len({rollout.reward for rollouts in steps for rollout in rollouts}) > 1
    assert any(
        not torch.equal(one, other)
        for one, other in zip(made.model.parameters(), untouched.model.parameters(), strict=True)
    )


def test_groups_without_a_difference_leave_the_policy_as_it_was(tmp_path):
    made, untouched = talkative(), talkative()
    train(tmp_path, made=made, judge=_all_wrong)
    assert all(
        torch.equal(one, other)
        for one, other in zip(made.model.parameters(), untouched.model.parameters(), strict=True)
    )


def test_a_killed_training_goes_on_where_its_checkpoint_was(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 0.0)
    whole_rows, whole_steps = train(tmp_path / "whole", exemplars="none")

    def kill(step: int, row: dict[str, float]) -> None:
        if step == 3:
            raise Killed

    folder = tmp_path / "killed"
    with pytest.raises(Killed):
        train(folder, on_step=kill, exemplars="none")
    assert checkpointed_steps(folder) == 2
    rows, steps = train(folder, exemplars="none")
    assert problems_of(steps) == problems_of(whole_steps)[2:]
    assert [rollout.completion.text for step in steps for rollout in step] == [
        rollout.completion.text for step in whole_steps[2:] for rollout in step
    ]
    # The scale went on from the checkpoint: rewards, and with them losses, are those of the whole.
    assert rows == whole_rows


def test_a_checkpoint_holds_the_scale_of_the_rewards(tmp_path):
    train(tmp_path)
    newest = newest_checkpoint(tmp_path)
    assert newest is not None
    assert (newest / "reward_scale.json").is_file()


def completions(*texts: str) -> list[Completion]:
    return [Completion(problem_id="level1/one", prompt="p", exemplar_ids=(), text=text) for text in texts]


def scorer(judge, *, novelty_bonus: float = 0.0) -> RolloutScorer:
    return RolloutScorer(
        judge=judge,
        pool=ExemplarPool(),
        scale=RewardScale(clip=1.5),
        style="compact",
        group_size=4,
        novelty_bonus=novelty_bonus,
    )


def test_equal_texts_are_judged_once():
    calls: list[list[str]] = []

    def judge(candidates: Sequence[Candidate]) -> list[Verdict]:
        calls.append([candidate.source for candidate in candidates])
        return [verdict(candidate, speedup=2.0) for candidate in candidates]

    rollouts = scorer(judge).score(completions("a", "b", "a", "a\n"))
    assert calls == [["a\n", "b\n"]]
    assert [rollout.candidate.source for rollout in rollouts] == ["a\n", "b\n", "a\n", "a\n"]
    assert len({rollout.reward for rollout in rollouts}) == 1


def test_a_reward_is_the_scaled_speedup_and_the_bonus_and_failures_earn_the_least():
    speedups = {"a\n": 2.0, "b\n": 0.5, "c\n": None}
    scoring = scorer(lambda each: [verdict(one, speedup=speedups[one.source]) for one in each], novelty_bonus=0.25)
    rewards = [rollout.reward for rollout in scoring.score(completions("a", "b", "b", "c"))]
    assert rewards == pytest.approx([1.0 + 0.25, -1.0, -1.0, -1.5])


def test_rewards_of_a_step_do_not_depend_on_each_other_but_later_ones_do():
    scoring = scorer(lambda each: [verdict(one, speedup=2.0) for one in each])
    first = [rollout.reward for rollout in scoring.score(completions("a", "b", "c", "d"))]
    assert len(set(first)) == 1
    assert scoring.score(completions("e"))[0].reward < first[0]
    assert len(scoring.pool.of("level1/one")) == 5


def test_metrics_of_a_step_with_nothing_correct_have_no_speedup():
    rollouts = scorer(_all_wrong).score(completions("a", "a", "b", "c"))
    metrics = {"reward": -1.5, "correct": 0.0, "unstable": 0.0, "distinct": 0.75}
    assert rollout_metrics(rollouts, group_size=4) == metrics


def _all_wrong(candidates: Sequence[Candidate]) -> list[Verdict]:
    return [verdict(candidate, speedup=None) for candidate in candidates]


def test_the_first_step_already_trains(tmp_path):
    made = talkative()
    before = [parameter.clone() for parameter in made.model.parameters()]
    rows, _ = train(tmp_path, made=made, steps=1)
    assert rows[0]["learning_rate"] == PARAMS.learning_rate
    assert not all(map(torch.equal, before, made.model.parameters()))


def test_the_rate_rises_to_its_full_height_and_falls_to_a_tenth(tmp_path):
    rows, _ = train(tmp_path, steps=8)
    rates = [row["learning_rate"] / PARAMS.learning_rate for row in rows]
    assert rates[:3] == pytest.approx([1 / 3, 2 / 3, 1])
    assert rates[3:] == sorted(rates[3:], reverse=True)
    assert rates[-1] == pytest.approx(0.1)
