"""Who writes completions while a policy is trained, and the proof that it writes with the weights of this moment."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from transformers import PreTrainedModel

from tasks.errors import StaleWeightsError
from tasks.training.policy import Policy
from tasks.training.sampling import sample_ids
from tasks.training.team import team

_SAMPLED_VALUES = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """Completions as tokens, and with which weights they were written."""

    completion_ids: list[list[list[int]]]
    """By prompt. A completion that ended by itself carries its end token."""
    stamp: str | None
    """weights_stamp of those weights; None if nobody ever told the engine."""


class GenerationEngine(Protocol):
    """Something that writes completions with weights it is given."""

    def take(self, model: PreTrainedModel, *, stamp: str) -> None:
        """Write with these weights from now on. Called by every process before each step's completions."""
        ...

    def write(
        self,
        prompt_ids: Sequence[Sequence[int]],
        *,
        num_samples: int,
        temperature: float | None,
        seed: int,
        first: int,
    ) -> Written:
        """num_samples completions of every prompt of this process; the arguments are those of sampling.sample_ids."""
        ...


class Sampler:
    """Writes with the very model that is trained, by tasks/training/sampling.py."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def take(self, model: PreTrainedModel, *, stamp: str) -> None:
        """Nothing to do: training changes this model in place."""

    def write(
        self, prompt_ids: Sequence[Sequence[int]], *, num_samples: int, temperature: float | None, seed: int, first: int
    ) -> Written:
        completion_ids = sample_ids(
            self._policy,
            prompt_ids,
            num_samples=num_samples,
            temperature=temperature,
            seed=seed,
            batch_size=len(prompt_ids) * num_samples,
            first=first,
        )
        return Written(completion_ids=completion_ids, stamp=weights_stamp(self._policy.model))


def generation_engine(policy: Policy) -> GenerationEngine:
    """What engine.generator of params.yaml asks for.

    Raises:
        MachineError: if it is not installed or does not answer.
    """
    engine = team().engine
    if engine.generator == "continuous_batching":
        from tasks.training.continuous_batching import ContinuousBatching

        return ContinuousBatching(policy)
    if engine.generator == "vllm":
        from tasks.training.vllm_server import VllmServer

        return VllmServer(policy, engine.vllm_url or "")
    return Sampler(policy)


def fresh_completions(
    engine: GenerationEngine,
    model: PreTrainedModel,
    prompt_ids: Sequence[Sequence[int]],
    *,
    num_samples: int,
    temperature: float | None,
    seed: int,
    first: int = 0,
) -> list[list[list[int]]]:
    """Completions by prompt, written with the model's present weights.

    Raises:
        StaleWeightsError: if the engine wrote with others: rewards of an earlier policy would be taken for this one's.
    """
    stamp = weights_stamp(model)
    engine.take(model, stamp=stamp)
    written = engine.write(prompt_ids, num_samples=num_samples, temperature=temperature, seed=seed, first=first)
    if written.stamp != stamp:
        raise StaleWeightsError(
            f"{type(engine).__name__} wrote with weights {written.stamp or 'nobody gave it'}, but the policy's are "
            f"{stamp}: what it wrote is not the policy's. Start it and this stage again"
        )
    return written.completion_ids


@torch.no_grad()
def weights_stamp(model: PreTrainedModel) -> str:
    """A few values of every parameter as a short text: equal for equal weights, and different after an update."""
    values = [
        parameter.detach().reshape(-1)[:: max(1, parameter.numel() // _SAMPLED_VALUES)][:_SAMPLED_VALUES].float()
        for parameter in model.parameters()
    ]
    return f"{zlib.crc32(torch.cat(values).cpu().numpy().tobytes()):08x}"
