"""Contrastive reinforcement learning: TRL's GRPO over prompts that show earlier candidates with their speedups."""

import copy
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from trl import GRPOConfig

from tasks.errors import TrainingError
from tasks.history.exemplars import ExemplarPool
from tasks.history.islands import Islands
from tasks.judge.verdict import Verdict
from tasks.params import ContrastiveRLParams, ExemplarsParams
from tasks.problems.problem import Problem
from tasks.training.checkpoints import (
    CheckpointCallback,
    checkpointed_steps,
    damaged,
    newest_checkpoint,
    settle,
)
from tasks.training.early_judging import EarlyJudge, JudgeLostError
from tasks.training.grpo_trainer import ContrastiveTrainer, OnRollouts
from tasks.training.policy import Policy
from tasks.training.preemption import Preemption
from tasks.training.rewards import RewardScale
from tasks.training.rollouts import Doubt, Judge, RolloutScorer, no_doubt
from tasks.training.soundness import SoundnessCallback
from tasks.training.team import team
from tasks.training.too_large import said_to_be_too_large
from tasks.training.trainer import OnStep, StepCallback, run, trainer_config
from tasks.variants.candidate import Candidate

_SCALE_FILE = "reward_scale.json"
_ROW_KEYS = (
    "loss",
    "reward",
    "correct",
    "unstable",
    "distinct",
    "speedup",
    "entropy",
    "kl",
    "clipped",
    "learning_rate",
    "grad_norm",
    "rows_at_once",
)


def train_grpo(
    policy: Policy,
    problems: Sequence[Problem],
    pool: ExemplarPool,
    judge: Judge,
    params: ContrastiveRLParams,
    *,
    exemplars: ExemplarsParams,
    checkpoints: Path,
    seed: int,
    on_step: OnStep | None = None,
    on_rollouts: OnRollouts | None = None,
    is_withheld: Doubt = no_doubt,
    islands: Islands | None = None,
    keeps_scale: bool = True,
) -> list[dict[str, float]]:
    """Train the policy's model in place; returns one row per step.

    A row holds the step, its loss and entropy and what rollout_metrics says of its rollouts.

    Training goes on from the newest whole checkpoint in the folder. The pool and the islands are not part of one: the
    caller fills them from its journal, with the rollouts of the first checkpointed_steps(checkpoints) steps and no
    later ones, since later ones are drawn again.

    Args:
        policy: what the stage starts from, which is also what the KL penalty refers to; changed in place.
        problems: each is asked as often as every other.
        pool: correct candidates known so far. It grows: a new correct candidate can be shown from the next step on.
        judge: verdicts of distinct candidates, in their order. Called in a thread of its own, once at a time.
        params: the section of params.yaml; its exemplars says by which of the paper's ways they are chosen.
        exemplars: how many a prompt shows, and the sizes of the buckets.
        checkpoints: folder of this training's checkpoints.
        seed: decides the order of the problems, the exemplars and the completions.
        on_step: called after each step with its number, from 1, and the values of its row.
        on_rollouts: called with the same number, the step's rollouts and what sampling them took, as soon as they are
            judged.
        is_withheld: whether a correct candidate earns nothing because it is doubted; asked after it was judged.
        islands: who lives where after the steps of the checkpoint; None makes islands of the pool where there are any.
        keeps_scale: whether what is usual for a problem is the checkpoint's, or is made of the pool: where speedups
            that the checkpoint knew cannot be compared with those that the judge finds.

    Raises:
        TrainingError: if the judge gives out, gradients or weights are not finite, or a batch does not fit into memory.
        MachineError: if sampling, or what training keeps, does not fit into memory.
        PreemptedError: if this process was asked to end. In all cases the same call continues what was begun.
    """
    settle(checkpoints)
    preemption = Preemption()
    with EarlyJudge(judge) as early_judge:

        def judge_or_leave(candidates: Sequence[Candidate]) -> Sequence[Verdict]:
            with preemption.interruptible():
                return early_judge.judge(candidates)

        trainer = _trainer(
            policy,
            problems,
            params,
            scorer=_scorer(
                policy,
                problems,
                pool,
                judge_or_leave,
                params,
                is_withheld,
                newest_checkpoint(checkpoints) if keeps_scale else None,
            ),
            early_judge=early_judge,
            preemption=preemption,
            exemplars=exemplars,
            islands=islands or new_islands(pool, params, seed=seed),
            checkpoints=checkpoints,
            seed=seed,
            on_step=on_step,
            on_rollouts=on_rollouts,
        )
        try:
            return run(trainer, checkpoints=checkpoints, keys=_ROW_KEYS, preemption=preemption)
        except JudgeLostError as error:
            done = checkpointed_steps(checkpoints, updates=params.updates_per_step)
            raise TrainingError(
                f"step {done + 1}: the judge gave out: {error}. A checkpoint has the {done} steps before; see to the "
                f"judge, and the same command continues with step {done + 1} of {params.steps}"
            ) from error


def new_islands(before: ExemplarPool, params: ContrastiveRLParams, *, seed: int) -> Islands | None:
    """Islands of the candidates known before training, or None where exemplars are chosen in another way."""
    if params.exemplars != "islands":
        return None
    return Islands(before, count=params.islands, reset_steps=params.island_reset_steps, seed=seed)


def _scorer(
    policy: Policy,
    problems: Sequence[Problem],
    pool: ExemplarPool,
    judge: Judge,
    params: ContrastiveRLParams,
    is_withheld: Doubt,
    scale_of: Path | None,
) -> RolloutScorer:
    """What scores the rollouts, with the reward scale of a checkpoint, or one made of the pool."""
    return RolloutScorer(
        judge=judge,
        pool=pool,
        scale=_reward_scale(problems, pool, clip=params.reward_clip, checkpoint=scale_of),
        style=policy.style,
        group_size=params.group_size,
        novelty_bonus=params.novelty_bonus,
        is_withheld=is_withheld,
    )


def _trainer(
    policy: Policy,
    problems: Sequence[Problem],
    params: ContrastiveRLParams,
    *,
    scorer: RolloutScorer,
    checkpoints: Path,
    seed: int,
    on_step: OnStep | None,
    **others: Any,
) -> ContrastiveTrainer:
    with said_to_be_too_large("a second model, for contrastive_rl.kl_beta,", remedy="Set that to 0"):
        reference_model = copy.deepcopy(policy.model).eval() if params.kl_beta else None
    order = _order(len(problems), params, seed=seed)
    trainer = ContrastiveTrainer(
        policy=policy,
        problems=problems,
        scorer=scorer,
        params=params,
        seed=seed,
        args=_config(policy, params, checkpoints=checkpoints, seed=seed),
        train_dataset=Dataset.from_dict({"prompt": [problems[index].problem_id for index in order], "problem": order}),
        callbacks=[
            _ScaleCallback(scorer.scale, checkpoints),  # before the checkpoint is marked as whole
            CheckpointCallback(checkpoints),
            SoundnessCallback(),
            StepCallback(on_step, _ROW_KEYS),
        ],
        **others,
    )
    _drop_nothing_out(policy.model)
    if reference_model is not None:
        trainer.penalise_divergence(reference_model, weight=params.kl_beta)
    return trainer


def _drop_nothing_out(model: torch.nn.Module) -> None:
    """Set every dropout to 0: sampling has none, and ratios and divergences would be of that."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name, value in vars(module).items():
            if "dropout" in name and isinstance(value, float):  # what functions are given, such as attention's
                setattr(module, name, 0.0)


class _ScaleCallback(TrainerCallback):
    """Writes the reward scale beside the weights it belongs to."""

    def __init__(self, scale: RewardScale, checkpoints: Path) -> None:
        self._scale = scale
        self._checkpoints = checkpoints

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if team().is_first:
            path = self._checkpoints / f"checkpoint-{state.global_step}" / _SCALE_FILE
            path.write_text(json.dumps(self._scale.state_dict()))


def _reward_scale(
    problems: Sequence[Problem], pool: ExemplarPool, *, clip: float, checkpoint: Path | None
) -> RewardScale:
    scale = RewardScale(clip=clip)
    if checkpoint:
        try:
            scale.load_state_dict(json.loads((checkpoint / _SCALE_FILE).read_text()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise damaged(checkpoint, error) from error
        return scale
    for problem in problems:
        for exemplar in pool.of(problem.problem_id):
            scale.observe(problem.problem_id, exemplar.speedup)
    return scale


def _order(num_problems: int, params: ContrastiveRLParams, *, seed: int) -> list[int]:
    """Problems of every update: whole passes in random order, a step's as often as it has updates."""
    rng = random.Random(seed)
    size = params.prompts_per_step
    order: list[int] = []
    while len(order) < params.steps * size:
        order += rng.sample(range(num_problems), k=num_problems)
    steps = (order[start : start + size] for start in range(0, params.steps * size, size))
    return [index for step in steps for _ in range(params.updates_per_step) for index in step]


def _config(policy: Policy, params: ContrastiveRLParams, *, checkpoints: Path, seed: int) -> GRPOConfig:
    return trainer_config(
        GRPOConfig,
        checkpoints=checkpoints,
        seed=seed,
        updates=params.updates_per_step,
        max_steps=params.steps * params.updates_per_step,
        gradient_checkpointing=policy.gradient_checkpointing,
        # One group at a time bounds the memory; a step sees all its groups.
        per_device_train_batch_size=params.group_size,
        gradient_accumulation_steps=params.prompts_per_step // team().size,
        num_generations=params.group_size,
        max_completion_length=policy.completion_tokens,
        temperature=params.temperature,
        learning_rate=params.learning_rate,
        warmup_steps=min(3, params.steps) * params.updates_per_step,
        loss_type="grpo",
        epsilon=params.clip_epsilon,
        # Rewards are normalised per problem already; dividing by a group's spread again would blow up the noise of
        # groups that agree.
        scale_rewards="none",
        # Running into the limit is a failure like any other; masked, it could not be unlearnt.
        mask_truncated_completions=False,
    )
