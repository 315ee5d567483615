"""A policy: a causal language model, its tokenizer and how it is asked. Made from scratch, loaded and saved here."""

import math
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from transformers import Lfm2Config, Lfm2ForCausalLM, PreTrainedModel
from transformers import set_seed as set_every_seed
from transformers.utils import logging as transformers_logging

from tasks.durable import flush
from tasks.errors import PolicyError
from tasks.params import PolicyParams
from tasks.problems.problem import Problem
from tasks.training.adapters import base_of, with_adapter_of, with_new_adapter
from tasks.training.loading import load_model, load_tokenizer, place_model, require_convolutions
from tasks.training.tokenizer import new_tokenizer
from tasks.variants.prompts import Exemplar, PromptStyle, as_completion, build_prompt

# oneDNN makes a kernel of a few MB for every shape of a product and would keep a thousand; batches vary in length.
KERNELS_KEPT = {"LRU_CACHE_CAPACITY": "64", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64"}
# Programs repeat phrases, and who copies one has to tell after which of them it stands. Taught to copy and nothing
# else, half of the samples of unseen programs are whole copies with 9 tokens to tell by, a sixth with 4.
_CONVOLUTION_TOKENS = 9


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """What is trained. The model is changed in place by training; the rest is fixed."""

    model: PreTrainedModel
    """Or a peft.PeftModel around one, which acts as one."""
    tokenizer: Any
    style: PromptStyle
    context_tokens: int
    """Longest prompt and completion together."""
    completion_tokens: int
    gradient_checkpointing: bool = False
    completions_at_once: int = 96
    """Sampled side by side at most."""

    @property
    def prompt_tokens(self) -> int:
        """Longest prompt that leaves room for a whole completion."""
        return self.context_tokens - self.completion_tokens

    @property
    def end_ids(self) -> list[int]:
        """Tokens that end a completion. Chat models have several."""
        declared = self.model.generation_config.eos_token_id
        ids = declared if isinstance(declared, list) else [declared]
        return sorted({self.tokenizer.eos_token_id, *(token for token in ids if token is not None)})


def new_policy(corpus: Sequence[str], params: PolicyParams, *, seed: int) -> Policy:
    """A small model with random weights and a tokenizer learnt from the corpus: references and candidates.

    Like load_policy it sets the number of threads torch computes with, and silences transformers.
    """
    # As prompts, so that their headings are learnt too.
    texts = [build_prompt(text, [], style=params.prompt_style) for text in corpus]
    tokenizer = new_tokenizer(texts, vocab_size=params.vocab_size, line_tokens=params.line_tokens)
    set_every_seed(seed)
    config = Lfm2Config(
        vocab_size=len(tokenizer),
        hidden_size=params.hidden_size,
        intermediate_size=math.ceil(params.hidden_size * 8 / 3 / 64) * 64,
        block_auto_adjust_ff_dim=False,
        num_hidden_layers=params.layers,
        layer_types=_layer_types(params.layers),
        conv_L_cache=_CONVOLUTION_TOKENS,
        num_attention_heads=params.heads,
        num_key_value_heads=params.heads,
        max_position_embeddings=params.context_tokens,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    return _policy(Lfm2ForCausalLM(config).to(getattr(torch, params.weights)), tokenizer, params)


def load_policy(source: Path | str, params: PolicyParams, *, seed: int = 0) -> Policy:
    """A policy saved here, or any pretrained causal language model of transformers, by path or by name.

    Only weights in safetensors are read, and no code that comes with a model is run. A folder may hold adapters instead
    of a model: then the model they name is loaded and they are laid over it.

    Args:
        params: where it asks for adapters and the source has none, new ones are added.
        seed: of new adapters.

    Raises:
        PolicyError: if the path does not exist or the model cannot be loaded.
    """
    base = base_of(Path(source))
    model = load_model(base or source, params)
    if base:
        model = with_adapter_of(Path(source), model)
    elif params.adapter:
        set_every_seed(seed)
        model = with_new_adapter(model, params.adapter)
    return _policy(model, load_tokenizer(source), params)


def save_policy(policy: Policy, folder: Path) -> None:
    """Write the model and its tokenizer; the folder appears whole or not at all, after a power cut too.

    It replaces an older one.

    Of a model with adapters these alone are written, beside the name of the model they belong to.
    """
    partial = folder.with_name(f".{folder.name}.{uuid4().hex}.partial")
    try:
        # peft would ask the model hub whether embeddings were resized; nothing here resizes them.
        policy.model.save_pretrained(partial, safe_serialization=True, save_embedding_layers=False)
        policy.tokenizer.save_pretrained(partial)
        flush(partial)
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def encode_prompt(policy: Policy, prompt: str) -> list[int]:
    """Tokens a completion is asked for with; "instruct" goes through the chat template where the tokenizer has one."""
    return encode_prompts(policy, [prompt])[0]


def encode_prompts(policy: Policy, prompts: Sequence[str]) -> list[list[int]]:
    """Each prompt's tokens, as encode_prompt gives them, on all cores."""
    tokenizer = policy.tokenizer
    if not prompts:
        return []  # which a tokenizer would stumble over
    if policy.style == "instruct" and tokenizer.chat_template:
        talks = [[{"role": "user", "content": prompt}] for prompt in prompts]
        return list(tokenizer.apply_chat_template(talks, add_generation_prompt=True, tokenize=True, return_dict=False))
    return list(tokenizer(list(prompts)).input_ids)


def can_write(policy: Policy, source: str) -> bool:
    """Whether a completion is long enough for the source.

    What a policy cannot write is neither worth teaching nor showing: it would begin to write it and be cut off.
    """
    completion = as_completion(source, style=policy.style)
    return len(policy.tokenizer(completion, add_special_tokens=False).input_ids) < policy.completion_tokens


def writable(policy: Policy, taught: Mapping[str, Sequence[Exemplar]]) -> dict[str, list[Exemplar]]:
    """The exemplars by problem id that the policy can write itself; problems left with none are dropped."""
    kept = {
        problem_id: [exemplar for exemplar in exemplars if can_write(policy, exemplar.source)]
        for problem_id, exemplars in taught.items()
    }
    return {problem_id: exemplars for problem_id, exemplars in kept.items() if exemplars}


def fitting_prompt(
    policy: Policy, reference: str, exemplars: Sequence[Exemplar], *, completion_tokens: int | None = None
) -> tuple[str, Sequence[Exemplar]]:
    """The prompt with as many of the exemplars, the last ones, as leave room for a completion, and those.

    Args:
        completion_tokens: of a completion that is known, its end included; None leaves room for the longest.

    Raises:
        PolicyError: if not even the bare reference leaves that room.
    """
    limit = policy.context_tokens - (completion_tokens or policy.completion_tokens)
    for dropped in range(len(exemplars) + 1):
        prompt = build_prompt(reference, exemplars[dropped:], style=policy.style)
        length = len(encode_prompt(policy, prompt))
        if length <= limit:
            return prompt, exemplars[dropped:]
    raise PolicyError(_no_room("a reference takes", length, limit))


def require_room(policy: Policy, problems: Iterable[Problem]) -> None:
    """Refuse, before any work is done with it, a problem that no prompt has room for.

    Raises:
        PolicyError: if a bare reference leaves no room for a whole completion; all such problems are named.
    """
    if words := lack_of_room(policy, problems):
        raise PolicyError(words)


def lack_of_room(policy: Policy, problems: Iterable[Problem]) -> str:
    """Which bare references leave no room for a whole completion, and what can be done; empty if none does."""
    asked = list(problems)
    prompts = [build_prompt(problem.source, [], style=policy.style) for problem in asked]
    lengths = map(len, encode_prompts(policy, prompts))
    too_long = {
        problem.problem_id: length
        for problem, length in zip(asked, lengths, strict=True)
        if length > policy.prompt_tokens
    }
    if not too_long:
        return ""
    names = ", ".join(sorted(too_long))
    whose = f"the reference of {names} takes" if len(too_long) == 1 else f"the longest reference of {names} takes"
    return _no_room(whose, max(too_long.values()), policy.prompt_tokens)


def _no_room(takes: str, length: int, limit: int) -> str:
    return (
        f"{takes} {length} tokens, but policy.context_tokens less those of a completion leaves only {limit}; raise "
        f"policy.context_tokens in params.yaml, lower policy.completion_tokens, or take it out of problems.folders"
    )


def _layer_types(layers: int) -> list[str]:
    """Short convolutions and attention in turn, attention last.

    A convolution hands each token its predecessors, which is half of what copying from the prompt takes: attention then
    has to find the place where those stood before. Attention alone needs several times the training to get there.
    """
    attends = [number % 2 == 0 for number in range(layers - 1, -1, -1)]
    attends[0] = layers == 1
    return ["full_attention" if attention else "conv" for attention in attends]


def _policy(model: PreTrainedModel, tokenizer: Any, params: PolicyParams) -> Policy:
    torch.set_num_threads(params.threads)
    for variable, number in KERNELS_KEPT.items():  # read when the first product is computed
        os.environ.setdefault(variable, number)
    require_convolutions(model)
    place_model(model, params.attention)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.config.pad_token_id = tokenizer.pad_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return Policy(
        model=model,
        tokenizer=tokenizer,
        style=params.prompt_style,
        context_tokens=params.context_tokens,
        completion_tokens=params.completion_tokens,
        gradient_checkpointing=params.gradient_checkpointing,
        completions_at_once=params.completions_at_once,
    )
