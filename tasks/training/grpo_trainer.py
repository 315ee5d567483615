"""The trainer of contrastive reinforcement learning: what is changed in TRL's GRPOTrainer, and nothing else."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from trl import GRPOTrainer
from trl.models import prepare_deepspeed, unwrap_model_for_generation
from trl.trainer.utils import add_fused_lm_head

from tasks.errors import CudaL1Error
from tasks.history.exemplars import choose_exemplars
from tasks.history.islands import Islands
from tasks.history.records import GENERATION, Cost
from tasks.params import ContrastiveRLParams, ExemplarsParams
from tasks.problems.problem import Problem
from tasks.training.adapters import within
from tasks.training.checkpoints import checkpointed_steps
from tasks.training.early_judging import EarlyJudge
from tasks.training.generation import fresh_completions, generation_engine
from tasks.training.memory import PartedBatches
from tasks.training.policy import Policy, encode_prompts, fitting_prompt
from tasks.training.preemption import Preemption
from tasks.training.rollouts import Completion, Rollout, RolloutScorer, rollout_metrics
from tasks.training.team import team
from tasks.training.too_large import said_to_be_too_large
from tasks.training.turns import own_turns
from tasks.variants.prompts import Exemplar

OnRollouts = Callable[[int, Sequence[Rollout], Cost], None]


class ContrastiveTrainer(PartedBatches, GRPOTrainer):
    """GRPO whose prompts are made at the moment of sampling, whose sampler is ours and whose reward is a verdict's.

    TRL asks _prepare_inputs for every group. Once per step _generate_and_score_completions gets a row per completion,
    the rows of a group side by side, and calls _tokenize_prompts, _generate_single_turn and the reward function. All
    but the last are private, so pyproject.toml holds TRL to one minor version.

    TRL and transformers call every update a step. Ours are steps of the method: rollouts, and the updates made from
    them. TRL is told of one update per batch of rollouts, whose first is made by the weights that sampled: the log-
    probabilities it computes anyway are then those of the samples, and later updates are measured against them.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        problems: Sequence[Problem],
        scorer: RolloutScorer,
        params: ContrastiveRLParams,
        exemplars: ExemplarsParams,
        islands: Islands | None,
        early_judge: EarlyJudge,
        preemption: Preemption,
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
        self.rows_at_once = params.micro_batch_size
        self._exemplars = exemplars
        self._islands = islands
        self._early_judge = early_judge
        self._preemption = preemption
        self._seed = seed
        self._on_rollouts = on_rollouts
        self._generator = generation_engine(policy)
        self._groups: list[dict[str, Tensor]] = []
        self._sampled_for = 0
        self._logps: list[Tensor] = []
        self._clipped: dict[tuple[int, int], Tensor] = {}

    def penalise_divergence(self, reference_model: PreTrainedModel, *, weight: float) -> None:
        """Add a KL penalty against a model in memory; TRL itself would load one by its name."""
        add_fused_lm_head(within(reference_model), temperature=self.temperature)
        if self.is_deepspeed_enabled:
            self.ref_model = prepare_deepspeed(reference_model, self.accelerator)
        else:
            self.ref_model = self.accelerator.prepare_model(reference_model, evaluation_mode=True)
        self.beta = weight

    @property
    def _number(self) -> int:
        """Of the step under way, from 1."""
        return self.state.global_step // self._params.updates_per_step + 1

    def compute_loss(self, model: Any, inputs: dict[str, Tensor], *others: Any, **named: Any) -> Any:
        self._logps = []
        loss = super().compute_loss(model, inputs, *others, **named)
        if self._params.updates_per_step > 1:
            logps = torch.cat(self._logps)
            inputs.setdefault("old_per_token_logps", logps)
            if self.state.global_step % self._params.updates_per_step:  # the first update's ratio is 1
                self._note_clipped(inputs, logps)
        return loss

    def _note_clipped(self, group: dict[str, Tensor], logps: Tensor) -> None:
        """The share of tokens that the later updates of the step have clipped so far, in all processes and groups.

        TRL's own means count each part of a group the same, however few tokens it has.
        """
        ratio = (logps - group["old_per_token_logps"]).exp()
        advantages = group["advantages"].unsqueeze(1)
        is_below = (ratio < 1 - self.epsilon_low) & (advantages < 0)
        is_above = (ratio > 1 + self.epsilon_high) & (advantages > 0)
        mask = group["completion_mask"].bool()
        counts = torch.stack([((is_below | is_above) & mask).sum(), mask.sum()])
        # By their place, so that a group that is computed again, in smaller parts, counts once.
        place = (self.state.global_step, self._step % self.args.gradient_accumulation_steps)
        self._clipped[place] = self.accelerator.reduce(counts, reduction="sum")
        clipped, tokens = torch.stack([*self._clipped.values()]).sum(dim=0).tolist()
        self._metrics["train"]["clipped"] = [clipped / max(tokens, 1)]

    def _get_per_token_logps_and_entropies(self, *arguments: Any, **named: Any) -> Any:
        found = super()._get_per_token_logps_and_entropies(*arguments, **named)
        self._logps.append(found[0].detach())
        return found

    def step_back(self, batches: int) -> None:
        self._step -= batches

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Any]:
        """The next group of the step, padded to its own longest row. TRL mixes the groups and pads to the step's."""
        if self._sampled_for != self._number:
            self._groups = self._new_groups(generation_batch)
            self._sampled_for = self._number
        return self._groups[self._step % self.args.gradient_accumulation_steps]

    def _new_groups(self, generation_batch: Any) -> list[dict[str, Tensor]]:
        try:
            batch = self._generate_and_score_completions(generation_batch)
        except CudaL1Error:
            self._save_whole_steps()
            raise
        self._clipped = {}
        size = self._params.group_size
        return [
            _trimmed({name: value[start : start + size] for name, value in batch.items() if value.dim()})
            for start in range(0, len(generation_batch), size)
        ]

    def _save_whole_steps(self) -> None:
        """A checkpoint of the steps before this one, whose rollouts have changed nothing yet."""
        is_new = self.state.global_step > checkpointed_steps(Path(str(self.args.output_dir)))
        if is_new and self.accelerator.num_processes == 1:
            self._save_checkpoint(self.model, trial=None)
            self.control = self.callback_handler.on_save(self.args, self.state, self.control)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        asked = [first["problem"] for first in inputs[:: self._params.group_size]]
        rows = [row for row in team().by_first(asked, self._prompted) for _ in range(self._params.group_size)]
        self._problem_ids = [row["problem_id"] for row in rows]
        return super()._generate_and_score_completions(rows)

    def _prompted(self, asked: Sequence[int]) -> list[dict[str, Any]]:
        """A prompt for every problem of the step, in all processes, with the exemplars of this moment."""
        rows: list[dict[str, Any]] = []
        for group, index in enumerate(asked):
            problem = self._problems[index]
            exemplars = self._choose_exemplars(problem.problem_id, group)
            prompt, shown = fitting_prompt(self._policy, problem.source, exemplars)
            exemplar_ids = tuple(exemplar.candidate_id for exemplar in shown)
            rows.append({"prompt": prompt, "problem_id": problem.problem_id, "exemplar_ids": exemplar_ids})
        return rows

    def _choose_exemplars(self, problem_id: str, group: int) -> list[Exemplar]:
        pool: Sequence[Exemplar] = self._scorer.pool.of(problem_id)
        if self._islands:
            pool = self._islands.of(problem_id, step=self._number, island=self._islands.asked(self._number, group))
        return choose_exemplars(
            pool,
            mode="buckets" if self._params.exemplars == "islands" else self._params.exemplars,
            count=self._exemplars.count,
            bucket_width=self._exemplars.bucket_width,
            bucket_temperature=self._exemplars.bucket_temperature,
            rng=random.Random(f"{self._seed} {self._number - 1} {group}"),
        )

    def _tokenize_prompts(self, prompts: list[str]) -> tuple[list[list[int]], None, dict[str, Any]]:
        return encode_prompts(self._policy, prompts), None, {}

    def _generate_single_turn(self, prompt_ids: list[list[int]], *_: Any, **__: Any) -> tuple[list[list[int]], None]:
        size = self._params.group_size
        at_once = size * (self._params.groups_at_once or len(prompt_ids))
        begun = time.perf_counter()
        completions: list[list[int]] = []
        for start in range(0, len(prompt_ids), at_once):
            completions += self._sample(prompt_ids[start : start + at_once : size], first=start // size)
            if start + at_once < len(prompt_ids):  # the last are judged when their rewards are asked for
                self._hand_over(self._problem_ids[start : start + at_once], completions[start:])
        self._generation = Cost(
            purpose=GENERATION,
            seconds=time.perf_counter() - begun,
            prompt_tokens=sum(team().gathered(sum(map(len, prompt_ids[::size])))),
            answer_tokens=sum(team().gathered(sum(map(len, completions)))),
            spent_at=time.time(),
        )
        # Without log-probabilities TRL computes them itself, from the very weights that sampled.
        return completions, None

    @contextmanager
    def _whole_model(self) -> Iterator[PreTrainedModel]:
        """The model with all its weights, of which ZeRO-3 gives every process a part."""
        if team().engine.zero_stage == 3:
            with ExitStack() as gathered:
                with said_to_be_too_large(
                    "the whole model, beside a share of its state,",
                    remedy="Set engine.offload or more engine.processes, or choose a smaller policy.model",
                ):
                    whole = unwrap_model_for_generation(self.model_wrapped, self.accelerator)
                    model = gathered.enter_context(whole)
                yield model
        else:
            yield self._policy.model

    def _sample(self, distinct: Sequence[list[int]], *, first: int) -> list[list[int]]:
        """The completions of some of this process's groups, the first of which has this number among them."""
        num_groups = self.args.gradient_accumulation_steps
        with (
            said_to_be_too_large(
                f"step {self._number}: sampling {len(distinct) * self._params.group_size} completions",
                remedy="Lower contrastive_rl.groups_at_once or policy.context_tokens",
            ),
            self._preemption.interruptible(),
            self._whole_model() as model,
            # Layers compiled for training would be compiled anew for every shape that sampling has.
            torch.compiler.set_stance("force_eager"),
        ):
            groups = fresh_completions(
                self._generator,
                model,
                distinct,
                num_samples=self._params.group_size,
                temperature=self._params.temperature,
                seed=random.Random(f"{self._seed} {self._number - 1}").getrandbits(32),
                first=team().number * num_groups + first,
            )
        return [ids for group in groups for ids in group]

    def _hand_over(self, problem_ids: Sequence[str], completions: Sequence[list[int]]) -> None:
        if not team().is_first:
            return  # the first judges for all, when it has their completions
        texts = self._policy.tokenizer.batch_decode(completions, skip_special_tokens=True)
        self._early_judge.hand_over(
            [self._scorer.candidate(problem, text) for problem, text in zip(problem_ids, texts, strict=True)]
        )

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
        found = [(rollout.candidate.problem_id, rollout.candidate.candidate_id) for rollout in rollouts]
        if self._islands:
            self._islands.note(self._number, found, self._scorer.pool, group_size=self._params.group_size)
        if self._on_rollouts:
            self._on_rollouts(self._number, rollouts, self._generation)
        return [rollout.reward for rollout in rollouts]


def _trimmed(group: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rows without the columns that are padding in all: prompts have those on the left, completions on the right."""
    prompt_width = int(group["prompt_mask"].sum(dim=1).max())
    completion_width = max(int(group["completion_mask"].sum(dim=1).max()), 1)
    widths = {name: slice(-prompt_width, None) for name in ("prompt_ids", "prompt_mask")}
    per_token = ("completion_ids", "completion_mask", "ref_per_token_logps")
    widths |= {name: slice(completion_width) for name in per_token if name in group}
    return group | {name: group[name][:, columns] for name, columns in widths.items()}
