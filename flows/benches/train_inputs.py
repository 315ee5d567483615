"""What the training benchmark trains on: models of random weights, made-up examples and rewards that are slow."""

import dataclasses
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from flows.benches.train import Point
from tasks.judge.verdict import Status, Verdict
from tasks.params import AdapterParams, EngineParams, Params, load_params
from tasks.problems.problem import Problem, Split
from tasks.training.adapters import with_new_adapter
from tasks.training.architectures import ARCHITECTURES, Architecture
from tasks.training.examples import Example
from tasks.training.loading import place_model
from tasks.training.policy import Policy
from tasks.training.tokenizer import new_tokenizer
from tasks.variants.candidate import Candidate

JUDGES = 8
"""Rewards that are computed side by side, for us and for TRL."""
_TINY = dataclasses.replace(
    ARCHITECTURES["Qwen2.5-Coder-0.5B"],
    name="tiny",
    hidden=64,
    intermediate=128,
    layers=2,
    heads=4,
    head_size=16,
    vocab=900,
)
_VOCAB = 800
# Of released kernels: references of some 450 tokens, and answers of some 1,600 with a long tail.
_PROMPT_TOKENS, _ANSWER_TOKENS, _SPREAD = 450, 1_600, 0.5


def architecture_of(point: Point) -> Architecture:
    return _TINY if point.size == "tiny" else ARCHITECTURES[f"Qwen2.5-Coder-{point.size}"]


def params_of(point: Point) -> Params:
    """params.yaml with the point's engine, and batches that its GPUs can share."""
    params = load_params()
    engine = EngineParams(  # type: ignore[call-arg]
        processes=point.gpus,
        zero_stage=point.zero_stage,
        keeps_weights=point.keeps_weights,
        compiles=point.compiles,
    )
    return dataclasses.replace(  # type: ignore[type-var]
        params,
        engine=engine,
        contrastive_rl=dataclasses.replace(params.contrastive_rl, prompts_per_step=point.gpus),  # type: ignore[type-var]
    )


def new_policy(point: Point, *, context_tokens: int, completion_tokens: int) -> Policy:
    """The architecture with random weights, held as its side of the benchmark would hold it."""
    from transformers import AutoModelForCausalLM, Qwen2Config
    from transformers import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    shape = architecture_of(point)
    tokenizer = new_tokenizer(_sources(), vocab_size=_VOCAB)
    config = Qwen2Config(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        max_position_embeddings=shape.positions,
        tie_word_embeddings=shape.is_tied,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(0)
    if point.device == "cpu":
        torch.set_num_threads(1)
    # DeepSpeed keeps a copy in float32 itself, and adapters leave the weights as they are.
    is_halved = point.device == "cuda" and (point.zero_stage > 0 or point.adapter)
    with torch.device(point.device):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16 if is_halved else torch.float32)
    if point.adapter:
        model = with_new_adapter(model, AdapterParams(rank=16, alpha=32.0))  # type: ignore[call-arg]
    place_model(model, None)
    return Policy(
        model=model,
        tokenizer=tokenizer,
        style="compact",
        context_tokens=context_tokens,
        completion_tokens=completion_tokens,
        gradient_checkpointing=point.checkpointing,
    )


def new_examples(policy: Policy, count: int, *, seed: int) -> list[Example]:
    """Pieces of this program's own text, of lengths as those of released kernels, that fit the policy's context."""
    text, rng = "".join(_sources()), random.Random(seed)
    per_token = len(text) / len(policy.tokenizer(text[: 1 << 18]).input_ids) * min(1.0, (1 << 18) / len(text))
    scale = policy.context_tokens / 4096

    def piece(tokens: int, limit: int) -> str:
        wanted = min(round(tokens * scale * rng.lognormvariate(0.0, _SPREAD)), limit * 3 // 4)
        start = rng.randrange(len(text) - limit * 8)
        return text[start : start + round(wanted * per_token)]

    answer = policy.completion_tokens
    return [
        Example(prompt=piece(_PROMPT_TOKENS, policy.prompt_tokens), completion=piece(_ANSWER_TOKENS, answer))
        for _ in range(count)
    ]


def new_problems(policy: Policy, count: int) -> list[Problem]:
    """Problems whose references fill half of the room for prompts."""
    head = "import torch\n\n\nclass Model(torch.nn.Module):\n    pass\n\n\ndef get_inputs():\n    return []\n\n\n"
    head += "def get_init_inputs():\n    return []\n"
    found = []
    for number in range(count):
        source = head
        while len(policy.tokenizer(source).input_ids) < policy.prompt_tokens // 2:
            source += f"number_{number} = {number}\n"
        problem_id = f"level1/{number}"
        found.append(Problem(problem_id=problem_id, level=1, family=str(number), split=Split.TRAIN, source=source))
    return found


def slow_reward(seconds: float) -> Callable[[Sequence[str]], list[float]]:
    """Rewards that take so long each, some at a time: by length, since random weights write nothing better."""

    def one(text: str) -> float:
        time.sleep(seconds)
        return float(len(text) % 7)

    def every(texts: Sequence[str]) -> list[float]:
        with ThreadPoolExecutor(JUDGES) as pool:
            return list(pool.map(one, texts))

    return every


def crash_of(candidate: Candidate) -> Verdict:
    """What a judge says of a text that is no program."""
    return Verdict(
        candidate_id=candidate.candidate_id,
        problem_id=candidate.problem_id,
        status=Status.CRASHED,
        device="none",
        protocol="none",
        timing=None,
        seconds=0.0,
        judged_at=0.0,
    )


def _sources() -> list[str]:
    return [path.read_text() for path in sorted(Path(__file__).parents[2].glob("tasks/**/*.py"))]
