"""Sampling completions from a policy: one loop over tokens, made for many completions of few prompts.

Beside `generate` of transformers it computes every distinct prompt once however many completions are asked of it, keeps
keys and values where they are instead of copying them at every token, and drops rows that have ended. On two cores that
is several times faster.
"""

import random
from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import LongTensor, Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from tasks.errors import PolicyError
from tasks.training.policy import Policy, encode_prompt

# Dropping ended rows copies the others' keys and values, so it waits until this share of the rows is worth it.
_DROPPED_SHARE = 0.2


def sample(
    policy: Policy,
    prompts: Sequence[str],
    *,
    num_samples: int,
    temperature: float | None,
    seed: int,
    batch_size: int,
    on_progress: Callable[[int], None] | None = None,
    on_tokens: Callable[[int, int], None] | None = None,
) -> list[list[str]]:
    """Completions of every prompt, in the prompts' order, as text without special tokens.

    Args:
        policy: the policy; its completion_tokens is where a completion is cut off.
        prompts: made by policy.fitting_prompt.
        num_samples: completions of each prompt.
        temperature: 1.0 samples from the policy as it is; None takes the likeliest token each time.
        seed: equal arguments and seeds give equal completions, whatever the batch size.
        batch_size: completions written side by side.
        on_progress: called with the number of completions that were added since its last call.
        on_tokens: called at the end with the numbers of tokens read, each prompt counted once, and written.

    Raises:
        PolicyError: if a prompt does not leave room for a whole completion.
    """
    prompt_ids = [encode_prompt(policy, prompt) for prompt in prompts]
    longest = max(map(len, prompt_ids), default=0)
    if longest > policy.prompt_tokens:
        raise PolicyError(
            f"a prompt takes {longest} tokens, more than the {policy.prompt_tokens} there are for prompts"
        )
    completion_ids = sample_ids(
        policy,
        prompt_ids,
        num_samples=num_samples,
        temperature=temperature,
        seed=seed,
        batch_size=batch_size,
        on_progress=on_progress,
    )
    if on_tokens:
        num_written = sum(len(ids) for group in completion_ids for ids in group)
        on_tokens(sum(map(len, prompt_ids)), num_written)
    return [policy.tokenizer.batch_decode(group, skip_special_tokens=True) for group in completion_ids]


@torch.inference_mode()
def sample_ids(
    policy: Policy,
    prompt_ids: Sequence[Sequence[int]],
    *,
    num_samples: int,
    temperature: float | None,
    seed: int,
    batch_size: int,
    first: int = 0,
    on_progress: Callable[[int], None] | None = None,
) -> list[list[list[int]]]:
    """Like sample, from tokens to tokens; a completion that ended by itself carries its end token.

    Args:
        first: number of the first prompt among those that several processes share. What is drawn for a prompt depends
            on the seed and its number alone, so that it does not matter who draws it and beside what.
    """
    completions: list[list[list[int]]] = [[] for _ in prompt_ids]
    by_length = sorted(range(len(prompt_ids)), key=lambda index: -len(prompt_ids[index]))
    rows = [(index, number) for index in by_length for number in range(num_samples)]
    draws = None
    if temperature is not None:
        draws = [
            _draws(num_samples, policy.completion_tokens, seed=seed, number=first + i) for i in range(len(prompt_ids))
        ]
    was_training = policy.model.training
    policy.model.eval()
    try:
        for start in range(0, len(rows), batch_size):
            batch = rows[start : start + batch_size]
            drawn = None if draws is None else torch.stack([draws[index][number] for index, number in batch])
            tokens = _complete(policy, [prompt_ids[index] for index, _ in batch], temperature, drawn)
            for (index, _), ids in zip(batch, tokens, strict=True):
                completions[index].append(ids)
            if on_progress:
                on_progress(len(batch))
    finally:
        policy.model.train(was_training)
    return completions


def _draws(num_samples: int, num_tokens: int, *, seed: int, number: int) -> Tensor:
    """Where in the distribution each token of each completion of a prompt lies, from 0 to 1."""
    generator = torch.Generator().manual_seed(random.Random(f"{seed} {number}").getrandbits(63))
    return torch.rand(num_samples, num_tokens, generator=generator)


def _complete(
    policy: Policy, prompts: Sequence[Sequence[int]], temperature: float | None, draws: Tensor | None
) -> list[list[int]]:
    """Completions of prompts, the likeliest where there is no temperature; draws are [prompts, completion_tokens]."""
    device = policy.model.device
    draws = draws if draws is None else draws.to(device)
    end_ids = torch.tensor(policy.end_ids, device=device)
    pad_id = policy.tokenizer.pad_token_id
    writer = _Writer(policy.model, prompts, pad_id=pad_id, max_tokens=policy.completion_tokens)
    written = torch.full((len(prompts), policy.completion_tokens), pad_id, device=device)
    rows = torch.arange(len(prompts), device=device)
    ended = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    for position in range(policy.completion_tokens):
        drawn = draws if draws is None else draws[rows, position]
        tokens = _chosen(writer.logits, temperature, drawn).masked_fill_(ended, pad_id)
        written[rows, position] = tokens
        ended |= torch.isin(tokens, end_ids)
        num_ended = int(ended.sum())
        if num_ended == len(ended):
            break
        if num_ended >= _DROPPED_SHARE * len(ended):
            kept = (~ended).nonzero().squeeze(1)
            rows, tokens, ended = rows[kept], tokens[kept], ended[kept]
            writer.keep(kept)
        writer.append(tokens)
    return [_until_end(row, set(policy.end_ids)) for row in written.tolist()]


def _chosen(logits: Tensor, temperature: float | None, draws: Tensor | None) -> Tensor:
    if temperature is None or draws is None:
        return logits.argmax(dim=-1)
    mass = (logits.float() / temperature).softmax(dim=-1).cumsum(dim=-1)
    tokens = torch.searchsorted(mass, (draws.unsqueeze(1) * mass[:, -1:]), right=True).squeeze(1)
    return tokens.clamp_max(logits.shape[-1] - 1)


def _until_end(tokens: list[int], end_ids: set[int]) -> list[int]:
    ends = (position for position, token in enumerate(tokens) if token in end_ids)
    return tokens[: next(ends, len(tokens) - 1) + 1]


class _Writer:
    """The model's state while a batch of completions grows: the logits of the next token, and what leads to them."""

    def __init__(self, model: PreTrainedModel, prompts: Sequence[Sequence[int]], *, pad_id: int, max_tokens: int):
        # Equal prompts are computed once and then repeated, which saves most of the work of a group.
        distinct = list(dict.fromkeys(map(tuple, prompts)))
        longest = max(map(len, distinct))
        device = model.device
        ids = torch.tensor([[pad_id] * (longest - len(prompt)) + list(prompt) for prompt in distinct], device=device)
        lengths = torch.tensor(list(map(len, distinct)), device=device)
        self._model = model
        self._mask = torch.ones(len(distinct), longest + max_tokens, dtype=torch.long, device=device)
        self._mask[:, :longest] = torch.arange(longest, device=device) >= (longest - lengths).unsqueeze(1)
        self._width = longest
        self._positions = lengths
        self._cache = _growing_cache(model, longest + max_tokens)
        self.logits = self._forward(ids, (self._mask[:, :longest].cumsum(1) - 1).clamp_min(0))
        number = {prompt: index for index, prompt in enumerate(distinct)}
        self.keep(torch.tensor([number[tuple(prompt)] for prompt in prompts], device=device))

    def append(self, tokens: Tensor) -> None:
        """Add one token to every row."""
        self._width += 1
        self.logits = self._forward(tokens.unsqueeze(1), self._positions.unsqueeze(1))
        self._positions = self._positions + 1

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows, in this order; a row may be named several times."""
        self._mask = self._mask[rows]
        self._positions = self._positions[rows]
        self.logits = self.logits[rows]
        self._cache.reorder_cache(cast(LongTensor, rows))

    def _forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        output = self._model(
            input_ids=ids,
            attention_mask=self._mask[:, : self._width],
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1]


class _GrowingLayer(DynamicLayer):
    """Keys and values in room set aside once: a token's are written in place, where DynamicLayer copies all of them."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._capacity = capacity
        self._length = 0

    def update(self, key_states: Tensor, value_states: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            batch, heads, _tokens, key_size = key_states.shape
            self._keys = key_states.new_empty(batch, heads, self._capacity, key_size)
            self._values = value_states.new_empty(batch, heads, self._capacity, value_states.shape[-1])
        start, self._length = self._length, self._length + key_states.shape[-2]
        self._keys[:, :, start : self._length] = key_states
        self._values[:, :, start : self._length] = value_states
        return self._show()

    def reorder_cache(self, beam_idx: Tensor) -> None:
        self._keys = self._keys[beam_idx]
        self._values = self._values[beam_idx]
        self._show()

    def _show(self) -> tuple[Tensor, Tensor]:
        self.keys, self.values = self._keys[:, :, : self._length], self._values[:, :, : self._length]
        return self.keys, self.values


def _growing_cache(model: PreTrainedModel, capacity: int) -> DynamicCache:
    cache = DynamicCache(config=model.config)
    # Layers of other kinds (sliding windows, linear attention) know best how to keep their own state.
    cache.layers = [_GrowingLayer(capacity) if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache
