"""Supervised training on prompts and completions, with TRL's SFTTrainer."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor
from trl import SFTConfig, SFTTrainer

from tasks.errors import PolicyError
from tasks.training.checkpoints import CheckpointCallback, remove_half_written
from tasks.training.examples import Example
from tasks.training.memory import PartedBatches
from tasks.training.policy import Policy, encode_prompt
from tasks.training.soundness import SoundnessCallback
from tasks.training.trainer import OnStep, StepCallback, run, trainer_config

# Batches are cut from a pool of so many, sorted by length: little padding, and still a different mix each time.
_POOLED_BATCHES = 16
_ROW_KEYS = ("loss", "mean_token_accuracy", "learning_rate", "grad_norm", "rows_at_once")


def train_sft(
    policy: Policy,
    examples: Sequence[Example],
    *,
    steps: int,
    batch_size: int,
    learning_rate: float,
    checkpoints: Path,
    seed: int,
    on_step: OnStep | None = None,
) -> list[dict[str, float]]:
    """Train the policy's model in place to write the completions; returns one row per step.

    Training goes on from the newest whole checkpoint in the folder and then gives the same losses as if it had never
    stopped. The folder must belong to these arguments alone: nothing here notices that they changed.

    Args:
        policy: its model is changed in place.
        examples: those longer than the policy's context are left out; the rest is repeated in a new order as needed.
        steps: optimiser steps in all, those of an earlier, interrupted call included.
        batch_size: examples per step.
        learning_rate: the highest, after a short warm-up; it falls to a tenth along a cosine.
        checkpoints: folder of this training's checkpoints.
        seed: decides the order of the examples.
        on_step: called after each step with its number, from 1, and the values of its row.

    Raises:
        PolicyError: if no example fits the policy's context.
        TrainingError: if gradients or weights are not finite, or a batch does not fit into memory row by row.
        PreemptedError: if this process was asked to end; the same call continues what was begun.
    """
    rows = [row for row in (_tokenised(policy, example) for example in examples) if row]
    if not rows:
        raise PolicyError(
            f"none of {len(examples)} examples fits policy.context_tokens ({policy.context_tokens}) and "
            f"policy.completion_tokens ({policy.completion_tokens}); raise them in params.yaml"
        )
    order = _order([len(row["input_ids"]) for row in rows], steps=steps, batch_size=batch_size, seed=seed)
    remove_half_written(checkpoints)
    config = trainer_config(
        SFTConfig,
        checkpoints=checkpoints,
        seed=seed,
        max_steps=steps,
        per_device_train_batch_size=batch_size,
        learning_rate=learning_rate,
        warmup_steps=max(1, min(steps // 10, 40)),
        weight_decay=0.01,
        max_length=policy.context_tokens,
        train_sampling_strategy="sequential",
        dataset_kwargs={"skip_prepare_dataset": True},  # the rows are tokenised and labelled
    )
    trainer = _PartedTrainer(
        model=policy.model,
        args=config,
        train_dataset=Dataset.from_list([rows[index] for index in order]),
        processing_class=policy.tokenizer,
        callbacks=[CheckpointCallback(checkpoints), SoundnessCallback(), StepCallback(on_step, _ROW_KEYS)],
    )
    return run(trainer, checkpoints=checkpoints, keys=_ROW_KEYS)


class _CompletionTrainer(SFTTrainer):
    """Computes next-token probabilities for completions only; TRL does so on a GPU and nowhere else."""

    def compute_loss(self, model: Any, inputs: dict[str, Tensor], *others: Any, **named: Any) -> Any:
        if inputs["input_ids"].is_cuda:
            return super().compute_loss(model, inputs, *others, **named)
        labels = inputs["labels"][:, 1:]
        hidden = model.base_model(
            input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], use_cache=False
        ).last_hidden_state[:, :-1]
        is_scored = labels != -100
        logits = model.get_output_embeddings()(hidden[is_scored]).float()
        targets = labels[is_scored]
        with torch.no_grad():
            accuracy = (logits.argmax(dim=-1) == targets).float().mean().item()
        self._metrics["train"]["mean_token_accuracy"].append(accuracy)
        # Each micro-batch counts by its tokens; a batch in one piece is all of them.
        num_tokens = named.get("num_items_in_batch") or len(targets)
        return torch.nn.functional.cross_entropy(logits, targets) * (len(targets) / num_tokens)


class _PartedTrainer(PartedBatches, _CompletionTrainer):
    def share(self, part: dict[str, Tensor], whole: dict[str, Tensor]) -> float:
        """All of it: a loss is a sum over tokens, divided by the number of them in all of the step."""
        return 1.0


def _tokenised(policy: Policy, example: Example) -> dict[str, list[int]] | None:
    prompt_ids = encode_prompt(policy, example.prompt)
    completion_ids = policy.tokenizer(example.completion, add_special_tokens=False).input_ids
    completion_ids = [*completion_ids, policy.tokenizer.eos_token_id]
    if len(completion_ids) > policy.completion_tokens or len(prompt_ids) + len(completion_ids) > policy.context_tokens:
        return None
    return {"input_ids": prompt_ids + completion_ids, "labels": [-100] * len(prompt_ids) + completion_ids}


def _order(lengths: Sequence[int], *, steps: int, batch_size: int, seed: int) -> list[int]:
    """Indices of the examples of every step: whole passes in random order, each batch of similar lengths."""
    rng = random.Random(seed)
    needed = steps * batch_size
    stream: list[int] = []
    while len(stream) < needed:
        stream += rng.sample(range(len(lengths)), k=len(lengths))
    order: list[int] = []
    for start in range(0, needed, batch_size * _POOLED_BATCHES):
        pool = sorted(stream[start : min(start + batch_size * _POOLED_BATCHES, needed)], key=lengths.__getitem__)
        batches = [pool[first : first + batch_size] for first in range(0, len(pool), batch_size)]
        rng.shuffle(batches)
        order += [index for batch in batches for index in batch]
    return order
