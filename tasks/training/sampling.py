"""Sampling completions from a policy: one loop over tokens, made for many completions of few prompts.

Beside `generate` of transformers it computes every distinct prompt once however many completions are asked of it, keeps
keys and values where they are instead of copying them at every token, and drops rows that have ended. On two cores that
is several times faster.
"""

import logging
import random
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tasks.errors import PolicyError
from tasks.training.decoding import Decoder
from tasks.training.policy import Policy, encode_prompts
from tasks.training.too_large import said_to_be_too_large

logger = logging.getLogger(__name__)


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
        batch_size: completions written side by side, unless the policy wants fewer.
        on_progress: called with the number of completions that were added since its last call.
        on_tokens: called at the end with the numbers of tokens read, each prompt counted once, and written.

    Raises:
        PolicyError: if a prompt does not leave room for a whole completion.
        MachineError: if one completion does not fit into memory; of several, fewer are written side by side.
    """
    prompt_ids = encode_prompts(policy, prompts)
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
        at_once, start = min(batch_size, policy.completions_at_once), 0
        while batch := rows[start : start + at_once]:
            drawn = None if draws is None else torch.stack([draws[index][number] for index, number in batch])
            tokens = _completed(policy, [prompt_ids[index] for index, _ in batch], temperature, drawn)
            if tokens is None:
                at_once = len(batch) // 2
                continue
            for (index, _), ids in zip(batch, tokens, strict=True):
                completions[index].append(ids)
            start += len(batch)
            if on_progress:
                on_progress(len(batch))
    finally:
        policy.model.train(was_training)
    # What PyTorch keeps for the next batch is missing to whoever judges these completions on the same device.
    torch.cuda.empty_cache()
    return completions


def _draws(num_samples: int, num_tokens: int, *, seed: int, number: int) -> Tensor:
    """Where in the distribution each token of each completion of a prompt lies, from 0 to 1."""
    generator = torch.Generator().manual_seed(random.Random(f"{seed} {number}").getrandbits(63))
    return torch.rand(num_samples, num_tokens, generator=generator)


def _completed(
    policy: Policy, prompts: Sequence[Sequence[int]], temperature: float | None, draws: Tensor | None
) -> list[list[int]] | None:
    """What _complete returns; None if so many prompts do not fit into memory side by side, but fewer may.

    Raises:
        MachineError: if not even one does.
    """
    if len(prompts) == 1:
        with said_to_be_too_large(
            f"a completion of up to {policy.completion_tokens} tokens, of a prompt of {len(prompts[0])},",
            remedy="Lower policy.context_tokens or policy.completion_tokens",
        ):
            return _complete(policy, prompts, temperature, draws)
    try:
        return _complete(policy, prompts, temperature, draws)
    except torch.OutOfMemoryError:
        logger.warning(
            f"{len(prompts)} completions do not fit into memory side by side; {len(prompts) // 2} are written at once "
            f"instead (policy.completions_at_once in params.yaml)"
        )
    torch.cuda.empty_cache()  # only here is the error gone, and with it what it held
    return None


def _complete(
    policy: Policy, prompts: Sequence[Sequence[int]], temperature: float | None, draws: Tensor | None
) -> list[list[int]]:
    """Completions of prompts, the likeliest where there is no temperature; draws are [prompts, completion_tokens]."""
    device = policy.model.device
    draws = draws if draws is None else draws.to(device)
    end_ids = torch.tensor(policy.end_ids, device=device)
    pad_id = policy.tokenizer.pad_token_id
    decoder = Decoder(policy.model, prompts, pad_id=pad_id, max_tokens=policy.completion_tokens)
    written = torch.full((len(prompts), policy.completion_tokens), pad_id, device=device)
    rows = torch.arange(len(prompts), device=device)
    ended = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    for position in range(policy.completion_tokens):
        drawn = draws if draws is None else draws[rows, position]
        tokens = _chosen(decoder.logits, temperature, drawn).masked_fill_(ended, pad_id)
        written[rows, position] = tokens
        ended |= torch.isin(tokens, end_ids)
        num_ended = int(ended.sum())
        if num_ended == len(ended):
            break
        if num_ended >= decoder.dropped_share * len(ended):
            kept = (~ended).nonzero().squeeze(1)
            rows, tokens, ended = rows[kept], tokens[kept], ended[kept]
            decoder.keep(kept)
        decoder.append(tokens)
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
