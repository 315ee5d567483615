"""One training of the benchmark in flows/benches/train.py, in this process: measured, and written down as JSON.

python -m flows.benches.train_point POINT_AS_JSON RECORD
"""

import dataclasses
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch

from flows.benches.train import Point
from flows.benches.train_inputs import architecture_of, new_examples, new_policy, new_problems, slow_reward
from flows.benches.train_sides import Clock, MeasuredError, our_grpo, our_sft, trl_grpo, trl_sft
from flows.following import let_blocks_of_memory_grow
from tasks.training import checkpoints as checkpointing
from tasks.training.throughput import peak_flops, training_flops

WARM_STEPS, STEPS = 3, 5
GRPO_WARM_STEPS, GRPO_STEPS = 1, 2
PROMPTS, GROUP, REWARD_S = 16, 8, 2.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What a step has to compute."""

    tokens: float
    """Of all examples, padding left out."""
    flops: float


def main() -> None:
    point, record = Point(**json.loads(sys.argv[1])), Path(sys.argv[2])
    checkpointing.INTERVAL_S = float("inf")
    is_sft = point.work == "sft"
    if point.side == "ours":
        let_blocks_of_memory_grow()
    clock = Clock(*((WARM_STEPS, STEPS) if is_sft else (GRPO_WARM_STEPS, GRPO_STEPS)))
    with tempfile.TemporaryDirectory() as folder:
        load = (_sft if is_sft else _grpo)(point, clock, Path(folder))
    if int(os.environ.get("RANK", "0")) == 0:
        partial = record.with_suffix(".partial")
        partial.write_text(json.dumps(_record(point, load, clock.steps_s), indent=1) + "\n")
        partial.replace(record)


def _record(point: Point, load: Load, steps_s: Sequence[float]) -> dict[str, object]:
    step_s = statistics.fmean(steps_s)
    on_cuda = point.device == "cuda"
    device = torch.cuda.get_device_name() if on_cuda else "cpu"
    peak = peak_flops(device)
    return {
        "name": point.name,
        "point": dataclasses.asdict(point),
        "device": device,
        "step_s": step_s,
        "steps_s": list(steps_s),
        "tokens_per_step": load.tokens,
        "tokens_per_s": load.tokens / step_s,
        "flops_per_step": load.flops,
        "mfu": load.flops / step_s / peak / point.gpus if peak else None,
        "peak_memory_bytes": torch.cuda.max_memory_allocated() if on_cuda else None,
        "max_reserved_bytes": torch.cuda.max_memory_reserved() if on_cuda else None,
        "torch": torch.__version__,
    }


def _sft(point: Point, clock: Clock, folder: Path) -> Load:
    context = 256 if point.size == "tiny" else 4096
    policy = new_policy(point, context_tokens=context, completion_tokens=context * 3 // 4)
    # The same in every step, in another order: those that are measured have to compute what is counted.
    examples = new_examples(policy, point.examples, seed=0)
    prompts = sum(len(policy.tokenizer(each.prompt).input_ids) for each in examples)
    lengths = [len(policy.tokenizer(each.prompt + each.completion).input_ids) for each in examples]
    tokens = sum(lengths)
    flops = training_flops(
        architecture_of(point),
        attended_tokens=sum(length * length for length in lengths) / tokens,
        scored_share=1 - prompts / tokens,
        trains_adapters=point.adapter,
    )
    with suppress(MeasuredError):
        side = our_sft if point.side == "ours" else trl_sft
        side(point, policy, examples, clock, folder, steps=WARM_STEPS + STEPS + 1)
    return Load(tokens=tokens, flops=flops * tokens)


def _grpo(point: Point, clock: Clock, folder: Path) -> Load:
    is_tiny = point.size == "tiny"
    prompts, group = (2, 2) if is_tiny else (PROMPTS, GROUP)
    context, completion = (256, 16) if is_tiny else (2048, 1024)
    policy = new_policy(point, context_tokens=context, completion_tokens=completion)
    problems = new_problems(policy, prompts)
    lengths = [len(policy.tokenizer(each.source).input_ids) + completion for each in problems]
    tokens = sum(lengths)
    flops = training_flops(
        architecture_of(point),
        attended_tokens=sum(length * length for length in lengths) / tokens,
        scored_share=prompts * completion / tokens,
    )
    reward, steps = slow_reward(0.02 if is_tiny else REWARD_S), GRPO_WARM_STEPS + GRPO_STEPS + 1
    with suppress(MeasuredError):
        side = our_grpo if point.side == "ours" else trl_grpo
        side(point, policy, problems, reward, clock, folder, group=group, steps=steps)
    return Load(tokens=group * tokens, flops=flops * group * tokens)


if __name__ == "__main__":
    main()
