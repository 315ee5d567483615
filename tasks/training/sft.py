"""Supervised training on prompts and completions, with TRL's SFTTrainer."""

import heapq
import math
import random
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor
from trl import SFTConfig, SFTTrainer

from tasks.errors import PolicyError
from tasks.training.adapters import within
from tasks.training.checkpoints import CheckpointCallback, settle
from tasks.training.examples import Example
from tasks.training.head import logits_once
from tasks.training.loading import WIDEST_CONVOLUTION, convolution_width
from tasks.training.memory import PartedBatches
from tasks.training.policy import Policy, encode_prompts
from tasks.training.soundness import SoundnessCallback
from tasks.training.team import team
from tasks.training.trainer import OnStep, StepCallback, run, trainer_config

# Batches are cut from a pool of so many, sorted by length: little padding, and still a different mix each time.
_POOLED_BATCHES = 16
# Encoded at once: what a tokenizer makes of a text takes ten times the memory of its tokens.
_CHUNK = 512
# What is taught, in messages.
COPYING, CANDIDATES = "copying", "candidates"
_ROW_KEYS = ("loss", "mean_token_accuracy", "learning_rate", "grad_norm", "rows_at_once")


def train_sft(
    policy: Policy,
    examples: Sequence[Example],
    *,
    steps: int,
    first: Sequence[Example] = (),
    first_steps: int = 0,
    batch_size: int,
    learning_rate: float,
    checkpoints: Path,
    seed: int,
    micro_batch_size: int | None = None,
    packing: bool = False,
    on_step: OnStep | None = None,
) -> list[dict[str, float]]:
    """Train the policy's model in place to write the completions; returns one row per step.

    Training goes on from the newest whole checkpoint in the folder and then gives the same losses as if it had never
    stopped. The folder must belong to these arguments alone: nothing here notices that they changed.

    Args:
        policy: its model is changed in place.
        examples: those longer than the policy's context are left out; the rest is repeated in a new order as needed.
        steps: optimiser steps in all, those of an earlier, interrupted call included.
        first: those that are learnt before the others, repeated likewise.
        first_steps: for how many of the steps.
        batch_size: examples per step.
        learning_rate: the highest, after a short warm-up; it falls to a tenth along a cosine.
        checkpoints: folder of this training's checkpoints.
        seed: decides the order of the examples.
        micro_batch_size: examples in memory at once, a divisor of batch_size; None for all of a step. The gradient is
            that of the whole step either way. Several processes share out the batch before that.
        packing: whether they are laid end to end without padding; the losses are those of padded batches.
        on_step: called after each step with its number, from 1, and the values of its row.

    Raises:
        PolicyError: if no example fits the policy's context, the model was made for shorter ones or cannot keep packed
            examples apart.
        TrainingError: if gradients or weights are not finite, or a batch does not fit into memory row by row.
        PreemptedError: if this process was asked to end; the same call continues what was begun.
    """
    _require_positions(policy)
    if packing:
        _require_isolation(policy)
    share = batch_size // team().size
    micro = math.gcd(share, micro_batch_size or share)
    how: dict[str, Any] = {"batch_size": batch_size, "packed_together": micro if packing else None, "seed": seed}
    rows = [
        *_rows(policy, first, steps=first_steps, of=COPYING, **how),
        *_rows(policy, examples, steps=steps - first_steps, of=CANDIDATES, **how),
    ]
    settle(checkpoints)
    config = trainer_config(
        SFTConfig,
        checkpoints=checkpoints,
        seed=seed,
        max_steps=steps,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=share // micro,
        gradient_checkpointing=policy.gradient_checkpointing,
        learning_rate=learning_rate,
        warmup_steps=max(1, min(steps // 10, 40)),
        weight_decay=0.01,
        max_length=None,  # longer rows are left out above
        padding_free=packing,
        train_sampling_strategy="sequential",
        dataset_kwargs={"skip_prepare_dataset": True},  # the rows are tokenised and labelled
    )
    trainer = _PartedTrainer(
        tokens_of_steps=[
            sum(_num_learnt(row) for row in rows[begin : begin + batch_size])
            for begin in range(0, steps * batch_size, batch_size)
        ],
        model=policy.model,
        args=config,
        # As arrays: lists of numbers take a collator ten times as long, for which a GPU would wait at every step.
        train_dataset=Dataset.from_list(rows).with_format("numpy"),
        processing_class=policy.tokenizer,
        callbacks=[CheckpointCallback(checkpoints), SoundnessCallback(), StepCallback(on_step, _ROW_KEYS)],
    )
    with logits_once():
        return run(trainer, checkpoints=checkpoints, keys=_ROW_KEYS)


def _require_isolation(policy: Policy) -> None:
    """Refuse to pack for a model in which an example would see those packed before it.

    Attention starts anew where positions do. Convolutions and recurrences run on across the seam, unless a kernel is
    told where it is, such as that of the library causal_conv1d, which transformers then uses.
    """
    kinds = set(getattr(policy.model.config, "layer_types", None) or [])
    if policy.model._is_stateful:
        kinds.add("recurrent")
    mixing = sorted(kinds - {"full_attention", "sliding_attention", "chunked_attention"})
    has_kernel = convolution_width(policy.model) <= WIDEST_CONVOLUTION
    if mixing and not (has_kernel and find_spec("causal_conv1d") is not None):
        raise PolicyError(
            f"sft.packing: the {', '.join(mixing)} layers of {policy.model.config.model_type} would mix what is packed "
            f"together; set it to false" + (", or install causal-conv1d" if has_kernel else "")
        )


def _require_positions(policy: Policy) -> None:
    positions = getattr(policy.model.config, "max_position_embeddings", None)
    if positions and policy.context_tokens > positions:
        raise PolicyError(
            f"policy.context_tokens is {policy.context_tokens}, but policy.model was made for {positions} positions; "
            f"lower it in params.yaml or choose another model"
        )


class _CompletionTrainer(SFTTrainer):
    """Computes next-token probabilities for completions only; TRL does so on a GPU and nowhere else."""

    def compute_loss(self, model: Any, inputs: dict[str, Tensor], *others: Any, **named: Any) -> Any:
        # What wraps a model, such as DeepSpeed's engine, must not be passed over.
        if inputs["input_ids"].is_cuda or model is not self.model:
            return super().compute_loss(model, inputs, *others, **named)
        labels = inputs["labels"][:, 1:]
        read = {name: value for name, value in inputs.items() if name != "labels"}
        is_scored = labels != -100
        # The model itself makes logits of what its head gives, which some scale or cap.
        whole = within(model)
        head = whole.get_output_embeddings()
        with head.register_forward_pre_hook(lambda _, given: (given[0][:, :-1][is_scored][None],)):
            logits = whole(**read, use_cache=False).logits[0].float()
        targets = labels[is_scored]
        with torch.no_grad():
            likeliest = logits.amax(dim=-1)  # argmax, which also says where, takes a processor 30 times as long
            accuracy = (logits.gather(-1, targets[:, None])[:, 0] == likeliest).float().mean().item()
        self._metrics["train"]["mean_token_accuracy"].append(accuracy)
        # Each micro-batch counts by its tokens; a batch in one piece is all of them.
        num_tokens = named.get("num_items_in_batch") or len(targets)
        return torch.nn.functional.cross_entropy(logits, targets) * (len(targets) / num_tokens)


class _PartedTrainer(PartedBatches, _CompletionTrainer):
    """Every token that is learnt counts the same.

    A batch holds programs of like lengths. Were its loss divided by its own tokens, those of short programs would count
    for several of long ones, the first of each too, which decides between them: a policy that was taught both as often
    would write the short ones several times as often.
    """

    def __init__(self, *, tokens_of_steps: Sequence[int], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._tokens_of_steps = tokens_of_steps
        self._usual_tokens = sum(tokens_of_steps) / len(tokens_of_steps)

    def _get_num_items_in_batch(self, batch_samples: Any, device: torch.device) -> Any:
        """What the losses of a step's tokens, of all processes together, are divided by: the mean of all steps."""
        return self._usual_tokens

    def log(self, logs: dict[str, float], *others: Any) -> None:
        """Tell the loss as the mean of the step's tokens all the same."""
        if "loss" in logs:
            logs = logs | {
                "loss": logs["loss"] * self._usual_tokens / self._tokens_of_steps[self.state.global_step - 1]
            }
        super().log(logs, *others)

    def share(self, part: dict[str, Tensor], whole: dict[str, Tensor]) -> float:
        """All of it: a loss is a sum over tokens, divided by the number of them in all of the step."""
        return 1.0


def _rows(
    policy: Policy,
    examples: Sequence[Example],
    *,
    steps: int,
    of: str,
    batch_size: int,
    packed_together: int | None,
    seed: int,
) -> list[dict[str, list[int]]]:
    """Those of the examples that fit, tokenised, in the order in which the steps learn them.

    Args:
        of: what they are examples of.
        packed_together: how many are laid end to end; None if they are padded.
    """
    if not steps:
        return []
    every = [
        row for begin in range(0, len(examples), _CHUNK) for row in _tokenised(policy, examples[begin : begin + _CHUNK])
    ]
    rows = [row for row in every if _fits(row, policy)]
    if not rows:
        raise PolicyError(_none_fits(policy, every, of=of, asked=steps * batch_size))
    lengths = [len(row["input_ids"]) for row in rows]
    if packed_together is None:
        return [rows[index] for index in _order(lengths, steps=steps, batch_size=batch_size, seed=seed)]
    # Batches of mixed lengths take nearly equal memory, and their parts can be made to take equal time.
    order = _order([0] * len(rows), steps=steps, batch_size=batch_size, seed=seed)
    batches = [order[begin : begin + batch_size] for begin in range(0, len(order), batch_size)]
    return [
        rows[batch[place]]
        for batch in batches
        for part in even_parts([lengths[index] for index in batch], size=packed_together)
        for place in part
    ]


def even_parts(lengths: Sequence[int], *, size: int) -> list[list[int]]:
    """Places of the lengths in parts of so many, whose sums are nearly equal; the largest part first.

    Processes take parts in turn, and at every layer all wait for the one whose part is the longest: so those that are
    computed at the same time, next to each other, are the most alike. The first takes the most memory of the step.

    Args:
        size: of a part, a divisor of the number of lengths.
    """
    rooms = [(0, part) for part in range(len(lengths) // size)]
    parts: list[list[int]] = [[] for _ in rooms]
    for place in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        total, part = heapq.heappop(rooms)
        parts[part].append(place)
        if len(parts[part]) < size:
            heapq.heappush(rooms, (total + lengths[place], part))
    return sorted(parts, key=lambda part: sum(lengths[place] for place in part), reverse=True)


def _tokenised(policy: Policy, examples: Sequence[Example]) -> list[dict[str, list[int]]]:
    """The examples with labels for the completion alone."""
    prompts = encode_prompts(policy, [example.prompt for example in examples])
    completions = policy.tokenizer([example.completion for example in examples], add_special_tokens=False).input_ids
    rows = []
    for prompt_ids, written_ids in zip(prompts, completions, strict=True):
        ids = [*written_ids, policy.tokenizer.eos_token_id]
        rows.append({"input_ids": prompt_ids + ids, "labels": [-100] * len(prompt_ids) + ids})
    return rows


def _fits(row: Mapping[str, list[int]], policy: Policy) -> bool:
    return _num_learnt(row) <= policy.completion_tokens and len(row["input_ids"]) <= policy.context_tokens


def _none_fits(policy: Policy, rows: Sequence[Mapping[str, list[int]]], *, of: str, asked: int) -> str:
    """That nothing is left to learn from: which examples, how many, how long, and what to change."""
    shortest = min(rows, key=lambda row: len(row["input_ids"]), default=None)
    if shortest is None:  # whoever made them left out what does not fit
        which = f"{asked} examples of {of} that were asked for"
    else:
        which = (
            f"{len(rows)} examples of {of}, of which the shortest takes {len(shortest['input_ids'])} tokens, "
            f"{_num_learnt(shortest)} of them for the program,"
        )
    return (
        f"none of the {which} fits policy.context_tokens ({policy.context_tokens}) and policy.completion_tokens "
        f"({policy.completion_tokens}); raise these in params.yaml"
        f"{', or set sft.copying_steps to 0' if of == COPYING else ''}"
    )


def _num_learnt(row: Mapping[str, list[int]]) -> int:
    """Tokens of a row that are learnt."""
    return sum(label != -100 for label in row["labels"])


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
