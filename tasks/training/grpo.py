"""Contrastive reinforcement learning: TRL's GRPO over prompts that show earlier candidates with their speedups."""

import copy
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PreTrainedModel, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from trl import GRPOConfig, GRPOTrainer
from trl.trainer.utils import add_fused_lm_head

from tasks.history.exemplars import ExemplarPool, choose_exemplars
from tasks.params import ContrastiveRLParams
from tasks.problems.problem import Problem
from tasks.training.checkpoints import CheckpointCallback, newest_checkpoint, remove_half_written
from tasks.training.policy import Policy, encode_prompt, fitting_prompt
from tasks.training.rewards import RewardScale
from tasks.training.rollouts import Completion, Judge, Rollout, RolloutScorer, rollout_metrics
from tasks.training.sampling import sample_ids
from tasks.training.trainer import OnStep, StepCallback, run, trainer_config

_SCALE_FILE = "reward_scale.json"
_ROW_KEYS = ("loss", "reward", "correct", "distinct", "speedup", "entropy", "kl", "learning_rate", "grad_norm")

OnRollouts = Callable[[int, Sequence[Rollout]], None]


def train_grpo(
    policy: Policy,
    problems: Sequence[Problem],
    pool: ExemplarPool,
    judge: Judge,
    params: ContrastiveRLParams,
    *,
    checkpoints: Path,
    seed: int,
    on_step: OnStep | None = None,
    on_rollouts: OnRollouts | None = None,
) -> list[dict[str, float]]:
    """Train the policy's model in place; returns one row per step.

    A row holds the step, its loss and entropy and what rollout_metrics says of its rollouts.

    Training goes on from the newest whole checkpoint in the folder. The pool is not part of a checkpoint: the caller
    fills it from its journal, with the rollouts of the first checkpointed_steps(checkpoints) steps and no later ones,
    since later ones are drawn again.

    Args:
        policy: what the stage starts from, which is also what the KL penalty refers to; changed in place.
        problems: each is asked as often as every other.
        pool: correct candidates known so far. It grows: a new correct candidate can be shown from the next step on.
        judge: verdicts of distinct candidates, in their order.
        params: the section of params.yaml.
        checkpoints: folder of this training's checkpoints.
        seed: decides the order of the problems, the exemplars and the completions.
        on_step: called after each step with its number, from 1, and the values of its row.
        on_rollouts: called with the same number and the step's rollouts as soon as they are judged.
    """
    reference_model = copy.deepcopy(policy.model) if params.kl_beta else None
    remove_half_written(checkpoints)
    scorer = RolloutScorer(
        judge=judge,
        pool=pool,
        scale=_reward_scale(problems, pool, clip=params.reward_clip, checkpoint=newest_checkpoint(checkpoints)),
        style=policy.style,
        group_size=params.group_size,
        novelty_bonus=params.novelty_bonus,
    )
    order = _order(len(problems), count=params.steps * params.prompts_per_step, seed=seed)
    trainer = ContrastiveTrainer(
        policy=policy,
        problems=problems,
        scorer=scorer,
        params=params,
        seed=seed,
        on_rollouts=on_rollouts,
        args=_config(policy, params, checkpoints=checkpoints, seed=seed),
        train_dataset=Dataset.from_dict({"prompt": [problems[index].problem_id for index in order], "problem": order}),
        callbacks=[
            _ScaleCallback(scorer.scale, checkpoints),  # before the checkpoint is marked as whole
            CheckpointCallback(checkpoints),
            StepCallback(on_step, _ROW_KEYS),
        ],
    )
    if reference_model is not None:
        trainer.penalise_divergence(reference_model, weight=params.kl_beta)
    return run(trainer, checkpoints=checkpoints, keys=_ROW_KEYS)


class ContrastiveTrainer(GRPOTrainer):
    """GRPO whose prompts are made at the moment of sampling, whose sampler is ours and whose reward is a verdict's.

    Once per step TRL calls _generate_and_score_completions with a row per completion, the rows of a group side by side,
    and within it _tokenize_prompts, _generate_single_turn and the reward function. The first three are private, so
    pyproject.toml holds TRL to one minor version.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        problems: Sequence[Problem],
        scorer: RolloutScorer,
        params: ContrastiveRLParams,
        seed: int,
        on_rollouts: OnRollouts | None,
        **trainer_arguments: Any,
    ) -> None:
        super().__init__(
            model=policy.model, processing_class=policy.tokenizer, reward_funcs=[self._rewards], **trainer_arguments
        )
        self._policy = policy
        self._problems = problems
        self._scorer = scorer
        self._params = params
        self._seed = seed
        self._on_rollouts = on_rollouts

    def penalise_divergence(self, reference_model: PreTrainedModel, *, weight: float) -> None:
        """Add a KL penalty against a model in memory; TRL itself would load one by its name."""
        add_fused_lm_head(reference_model, temperature=self.temperature)
        self.ref_model = self.accelerator.prepare_model(reference_model, evaluation_mode=True)
        self.beta = weight

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        rows: list[dict[str, Any]] = []
        for group, first in enumerate(inputs[:: self._params.group_size]):
            problem = self._problems[first["problem"]]
            exemplars = choose_exemplars(
                self._scorer.pool.of(problem.problem_id),
                mode=self._params.exemplars,
                count=self._params.num_exemplars,
                bucket_width=self._params.bucket_width,
                bucket_temperature=self._params.bucket_temperature,
                rng=random.Random(f"{self._seed} {self.state.global_step} {group}"),
            )
            prompt, shown = fitting_prompt(self._policy, problem.source, exemplars)
            exemplar_ids = tuple(exemplar.candidate_id for exemplar in shown)
            row = {"prompt": prompt, "problem_id": problem.problem_id, "exemplar_ids": exemplar_ids}
            rows += [row] * self._params.group_size
        return super()._generate_and_score_completions(rows)

    def _tokenize_prompts(self, prompts: list[str]) -> tuple[list[list[int]], None, dict[str, Any]]:
        return [encode_prompt(self._policy, prompt) for prompt in prompts], None, {}

    def _generate_single_turn(self, prompt_ids: list[list[int]], *_: Any, **__: Any) -> tuple[list[list[int]], None]:
        groups = sample_ids(
            self._policy,
            prompt_ids[:: self._params.group_size],
            num_samples=self._params.group_size,
            temperature=self._params.temperature,
            seed=random.Random(f"{self._seed} {self.state.global_step}").getrandbits(32),
            batch_size=len(prompt_ids),
        )
        # Without log-probabilities TRL computes them itself, from the very weights that sampled.
        return [ids for group in groups for ids in group], None

    def _rewards(
        self,
        *,
        prompts: Sequence[str],
        completions: Sequence[str],
        problem_id: Sequence[str],
        exemplar_ids: Sequence[tuple[str, ...]],
        **_: Any,
    ) -> list[float | None]:
        rollouts = self._scorer.score(
            [
                Completion(problem_id=problem, prompt=prompt, exemplar_ids=exemplars, text=text)
                for problem, prompt, exemplars, text in zip(problem_id, prompts, exemplar_ids, completions, strict=True)
            ]
        )
        for name, value in rollout_metrics(rollouts, group_size=self._params.group_size).items():
            if name != "reward":  # which TRL reports itself
                self._log_metric(name, value)
        if self._on_rollouts:
            self._on_rollouts(self.state.global_step + 1, rollouts)
        return [rollout.reward for rollout in rollouts]


class _ScaleCallback(TrainerCallback):
    """Writes the reward scale beside the weights it belongs to."""

    def __init__(self, scale: RewardScale, checkpoints: Path) -> None:
        self._scale = scale
        self._checkpoints = checkpoints

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        path = self._checkpoints / f"checkpoint-{state.global_step}" / _SCALE_FILE
        path.write_text(json.dumps(self._scale.state_dict()))


def _reward_scale(
    problems: Sequence[Problem], pool: ExemplarPool, *, clip: float, checkpoint: Path | None
) -> RewardScale:
    scale = RewardScale(clip=clip)
    if checkpoint:
        scale.load_state_dict(json.loads((checkpoint / _SCALE_FILE).read_text()))
        return scale
    for problem in problems:
        for exemplar in pool.of(problem.problem_id):
            scale.observe(problem.problem_id, exemplar.speedup)
    return scale


def _order(num_problems: int, *, count: int, seed: int) -> list[int]:
    """Whole passes over the problems, each in random order, cut off after count."""
    rng = random.Random(seed)
    order: list[int] = []
    while len(order) < count:
        order += rng.sample(range(num_problems), k=num_problems)
    return order[:count]


def _config(policy: Policy, params: ContrastiveRLParams, *, checkpoints: Path, seed: int) -> GRPOConfig:
    return trainer_config(
        GRPOConfig,
        checkpoints=checkpoints,
        seed=seed,
        max_steps=params.steps,
        # One group at a time bounds the memory; a step sees all its groups.
        per_device_train_batch_size=params.group_size,
        gradient_accumulation_steps=params.prompts_per_step,
        num_generations=params.group_size,
        max_completion_length=policy.completion_tokens,
        temperature=params.temperature,
        learning_rate=params.learning_rate,
        warmup_steps=min(3, params.steps),
        loss_type="grpo",
        epsilon=params.clip_epsilon,
        # Rewards are normalised per problem already; dividing by a group's spread again would blow up the noise of
        # groups that agree.
        scale_rewards="none",
        mask_truncated_completions=True,
    )
