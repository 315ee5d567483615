"""The trainer of contrastive reinforcement learning: what is changed in TRL's GRPOTrainer, and nothing else."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from trl import GRPOTrainer
from trl.models import prepare_deepspeed, unwrap_model_for_generation
from trl.trainer.utils import add_fused_lm_head

from tasks.history.exemplars import choose_exemplars
from tasks.history.records import GENERATION, Cost
from tasks.params import ContrastiveRLParams, ExemplarsParams
from tasks.problems.problem import Problem
from tasks.training.adapters import within
from tasks.training.generation import fresh_completions, generation_engine
from tasks.training.policy import Policy, encode_prompt, fitting_prompt
from tasks.training.rollouts import Completion, Rollout, RolloutScorer, rollout_metrics
from tasks.training.team import team
from tasks.training.turns import own_turns

OnRollouts = Callable[[int, Sequence[Rollout], Cost], None]


class ContrastiveTrainer(GRPOTrainer):
    """GRPO whose prompts are made at the moment of sampling, whose sampler is ours and whose reward is a verdict's.

    TRL asks _prepare_inputs for every group. Once per step _generate_and_score_completions gets a row per completion,
    the rows of a group side by side, and calls _tokenize_prompts, _generate_single_turn and the reward function. All
    but the last are private, so pyproject.toml holds TRL to one minor version.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        problems: Sequence[Problem],
        scorer: RolloutScorer,
        params: ContrastiveRLParams,
        exemplars: ExemplarsParams,
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
        self._exemplars = exemplars
        self._seed = seed
        self._on_rollouts = on_rollouts
        self._generator = generation_engine(policy)
        self._groups: list[dict[str, Tensor]] = []

    def penalise_divergence(self, reference_model: PreTrainedModel, *, weight: float) -> None:
        """Add a KL penalty against a model in memory; TRL itself would load one by its name."""
        add_fused_lm_head(within(reference_model), temperature=self.temperature)
        if self.is_deepspeed_enabled:
            self.ref_model = prepare_deepspeed(reference_model, self.accelerator)
        else:
            self.ref_model = self.accelerator.prepare_model(reference_model, evaluation_mode=True)
        self.beta = weight

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Any]:
        """The next group of the step, padded to its own longest row. TRL mixes the groups and pads to the step's."""
        number = self._step % self.args.gradient_accumulation_steps
        if number == 0 or not self._groups:
            batch = self._generate_and_score_completions(generation_batch)
            size = self._params.group_size
            self._groups = [
                _trimmed({name: value[start : start + size] for name, value in batch.items() if value.dim()})
                for start in range(0, len(generation_batch), size)
            ]
        return self._groups[number]

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        asked = [first["problem"] for first in inputs[:: self._params.group_size]]
        rows = [row for row in team().by_first(asked, self._prompted) for _ in range(self._params.group_size)]
        return super()._generate_and_score_completions(rows)

    def _prompted(self, asked: Sequence[int]) -> list[dict[str, Any]]:
        """A prompt for every problem of the step, in all processes, with the exemplars of this moment."""
        rows: list[dict[str, Any]] = []
        for group, index in enumerate(asked):
            problem = self._problems[index]
            exemplars = choose_exemplars(
                self._scorer.pool.of(problem.problem_id),
                mode=self._params.exemplars,
                count=self._exemplars.count,
                bucket_width=self._exemplars.bucket_width,
                bucket_temperature=self._exemplars.bucket_temperature,
                rng=random.Random(f"{self._seed} {self.state.global_step} {group}"),
            )
            prompt, shown = fitting_prompt(self._policy, problem.source, exemplars)
            exemplar_ids = tuple(exemplar.candidate_id for exemplar in shown)
            rows.append({"prompt": prompt, "problem_id": problem.problem_id, "exemplar_ids": exemplar_ids})
        return rows

    def _tokenize_prompts(self, prompts: list[str]) -> tuple[list[list[int]], None, dict[str, Any]]:
        return [encode_prompt(self._policy, prompt) for prompt in prompts], None, {}

    def _generate_single_turn(self, prompt_ids: list[list[int]], *_: Any, **__: Any) -> tuple[list[list[int]], None]:
        distinct = prompt_ids[:: self._params.group_size]
        begun = time.perf_counter()
        # Layers compiled for training would be compiled anew for every shape that sampling has.
        with self._whole_model() as model, torch.compiler.set_stance("force_eager"):
            groups = fresh_completions(
                self._generator,
                model,
                distinct,
                num_samples=self._params.group_size,
                temperature=self._params.temperature,
                seed=random.Random(f"{self._seed} {self.state.global_step}").getrandbits(32),
                first=team().number * len(distinct),
            )
        completions = [ids for group in groups for ids in group]
        self._generation = Cost(
            purpose=GENERATION,
            seconds=time.perf_counter() - begun,
            prompt_tokens=sum(team().gathered(sum(map(len, distinct)))),
            answer_tokens=sum(team().gathered(sum(map(len, completions)))),
            spent_at=time.time(),
        )
        # Without log-probabilities TRL computes them itself, from the very weights that sampled.
        return completions, None

    @contextmanager
    def _whole_model(self) -> Iterator[PreTrainedModel]:
        """The model with all its weights, of which ZeRO-3 gives every process a part."""
        if team().engine.zero_stage == 3:
            with unwrap_model_for_generation(self.model_wrapped, self.accelerator) as model:
                yield model
        else:
            yield self._policy.model

    def _rewards(
        self,
        *,
        prompts: Sequence[str],
        completions: Sequence[str],
        problem_id: Sequence[str],
        exemplar_ids: Sequence[tuple[str, ...]],
        **_: Any,
    ) -> list[float | None]:
        rows = [
            Completion(problem_id=problem, prompt=prompt, exemplar_ids=exemplars, text=text)
            for problem, prompt, exemplars, text in zip(problem_id, prompts, exemplar_ids, completions, strict=True)
        ]
        with own_turns.yielded():  # to those who judge
            return [*team().by_first(rows, self._scored)]

    def _scored(self, completions: Sequence[Completion]) -> list[float]:
        """The rewards of all processes' completions."""
        rollouts = self._scorer.score(completions)
        for name, value in rollout_metrics(rollouts, group_size=self._params.group_size).items():
            if name != "reward":  # which TRL reports itself
                self._log_metric(name, value)
        if self._on_rollouts:
            self._on_rollouts(self.state.global_step + 1, rollouts, self._generation)
        return [rollout.reward for rollout in rollouts]


def _trimmed(group: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rows without the columns that are padding in all: prompts have those on the left, completions on the right."""
    prompt_width = int(group["prompt_mask"].sum(dim=1).max())
    completion_width = max(int(group["completion_mask"].sum(dim=1).max()), 1)
    widths = {name: slice(-prompt_width, None) for name in ("prompt_ids", "prompt_mask")}
    per_token = ("completion_ids", "completion_mask", "ref_per_token_logps")
    widths |= {name: slice(completion_width) for name in per_token if name in group}
    return group | {name: group[name][:, columns] for name, columns in widths.items()}
