"""The two sides of the training benchmark: our trainers and plain TRL, on the same model, examples and rewards."""

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from flows.benches.train import Point
from flows.benches.train_inputs import crash_of, params_of
from flows.parts.launching import trainers
from tasks.history.exemplars import ExemplarPool
from tasks.judge.verdict import Verdict
from tasks.problems.problem import Problem
from tasks.training.examples import Example
from tasks.training.policy import Policy
from tasks.variants.candidate import Candidate

Reward = Callable[[Sequence[str]], list[float]]


class MeasuredError(Exception):
    """Not a failure: enough steps were measured, and what follows would only write checkpoints."""


class Clock:
    """When each step ended."""

    def __init__(self, warm: int, measured: int) -> None:
        self._warm, self._measured = warm, measured
        self._ends: list[float] = []

    def tick(self, *_: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self._ends.append(time.perf_counter())
        if len(self._ends) > self._warm + self._measured - 1:
            raise MeasuredError

    @property
    def steps_s(self) -> list[float]:
        """What each measured step took: one that compiles anew, or waits for who does, is to be seen."""
        ends = self._ends[self._warm - 1 :]
        return [end - begin for begin, end in itertools.pairwise(ends)]


def our_sft(
    point: Point, policy: Policy, examples: Sequence[Example], clock: Clock, folder: Path, *, steps: int
) -> None:
    from tasks.training.sft import train_sft

    with trainers(params_of(point), folder=folder) as crew:
        crew.train(
            train_sft,
            policy,
            examples,
            steps=steps,
            batch_size=point.examples,
            learning_rate=1e-5,
            checkpoints=folder / "checkpoints",
            seed=0,
            micro_batch_size=point.micro_batch,
            packing=True,
            on_step=clock.tick,
        )


def trl_sft(
    point: Point, policy: Policy, examples: Sequence[Example], clock: Clock, folder: Path, *, steps: int
) -> None:
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    trainer = SFTTrainer(
        model=policy.model,
        args=SFTConfig(
            **_trl_arguments(point, folder),
            max_steps=steps,
            per_device_train_batch_size=point.micro_batch,
            gradient_accumulation_steps=point.examples // point.micro_batch // point.gpus,
            max_length=policy.context_tokens,
        ),
        train_dataset=Dataset.from_list([dataclasses.asdict(example) for example in examples]),
        processing_class=policy.tokenizer,
        callbacks=[_clock_callback(clock)],
    )
    trainer.train()


def our_grpo(
    point: Point,
    policy: Policy,
    problems: Sequence[Problem],
    reward: Reward,
    clock: Clock,
    folder: Path,
    *,
    group: int,
    steps: int,
) -> None:
    from tasks.training.grpo import train_grpo

    def judge(candidates: Sequence[Candidate]) -> list[Verdict]:
        reward([candidate.source for candidate in candidates])
        return [crash_of(candidate) for candidate in candidates]

    params = params_of(point)
    with trainers(params, folder=folder) as crew:
        crew.train(
            train_grpo,
            policy,
            problems,
            ExemplarPool(),
            judge,
            dataclasses.replace(  # type: ignore[type-var]
                params.contrastive_rl,
                steps=steps,
                prompts_per_step=len(problems),
                group_size=group,
                groups_at_once=max(1, len(problems) // 4),  # rewards come from elsewhere, as from judges' own devices
                exemplars="none",
            ),
            exemplars=params.exemplars,
            checkpoints=folder / "checkpoints",
            seed=0,
            on_step=clock.tick,
        )


def trl_grpo(
    point: Point,
    policy: Policy,
    problems: Sequence[Problem],
    reward: Reward,
    clock: Clock,
    folder: Path,
    *,
    group: int,
    steps: int,
) -> None:
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    def reward_function(*, completions: Sequence[str], **_: Any) -> list[float | None]:
        return [*reward(completions)]

    trainer = GRPOTrainer(
        model=policy.model,
        reward_funcs=[reward_function],
        args=GRPOConfig(
            **_trl_arguments(point, folder),
            max_steps=steps,
            per_device_train_batch_size=group,
            gradient_accumulation_steps=len(problems),
            num_generations=group,
            max_completion_length=policy.completion_tokens,
        ),
        train_dataset=Dataset.from_list([{"prompt": each.source} for each in problems] * steps),
        processing_class=policy.tokenizer,
        callbacks=[_clock_callback(clock)],
    )
    trainer.train()


def _trl_arguments(point: Point, folder: Path) -> dict[str, Any]:
    """What TRL cannot do without here; all else is its own default."""
    arguments: dict[str, Any] = {
        "output_dir": str(folder),
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "logging_steps": 1,
    }
    if point.device == "cpu":
        arguments |= {"use_cpu": True, "bf16": False}
    if point.zero_stage:
        stage = {"stage": point.zero_stage}
        auto = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping")
        settings = {"bf16": {"enabled": point.device == "cuda"}, "zero_optimization": stage}
        arguments["deepspeed"] = settings | dict.fromkeys(auto, "auto") | {"zero_allow_untested_optimizer": True}
    return arguments


def _clock_callback(clock: Clock) -> Any:
    from transformers import TrainerCallback

    class Ticking(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.tick()

    return Ticking()
