"""One question to a language model: one trial of one generator at one problem."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from tasks.params import GeneratorParams
from tasks.problems.problem import Problem
from tasks.variants.prompts import Exemplar, build_prompt

# A byte-level tokenizer makes at most one token of a byte; the rest is what a chat template may put around a message.
TEMPLATE_TOKENS = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A prompt and how it is to be answered. Equal questions are one purchase, whatever endpoint they are sent to."""

    generator: str
    model: str
    problem_id: str
    trial: int
    """Counts from 0 for one generator and problem; trials differ in nothing else."""
    prompt: str
    answer_tokens: int
    temperature: float | None

    @classmethod
    def about(
        cls,
        problem: Problem,
        *,
        generator: str,
        params: GeneratorParams,
        device: str,
        trial: int,
        exemplars: Sequence[Exemplar] = (),
    ) -> Self:
        """The question of stage 1 of the paper: reference, task, form of the answer and restrictions.

        With exemplars it is the contrastive one.

        Source: CUDA-L1 (arXiv:2507.14111), the one-shot prompt of section 2, the contrastive one of section 3.
        """
        return cls(
            generator=generator,
            model=params.model,
            problem_id=problem.problem_id,
            trial=trial,
            prompt=build_prompt(problem.source, exemplars, style="instruct") + _where(device),
            answer_tokens=params.answer_tokens,
            temperature=params.temperature,
        )

    @property
    def request_id(self) -> str:
        """Content hash of everything that decides what is asked; never of the endpoint, its key or its prices."""
        asked = [self.generator, self.model, self.problem_id, self.trial, self.prompt]
        text = json.dumps([*asked, self.answer_tokens, self.temperature])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def most_prompt_tokens(self) -> int:
        """More than the endpoint can count, whatever its tokenizer."""
        return len(self.prompt.encode()) + TEMPLATE_TOKENS


def _where(device: str) -> str:
    """What the policy's prompts need not say, since it learns it: candidates for a GPU are useless without one."""
    if device == "cpu":
        return "- It runs on a CPU without any GPU: plain PyTorch, or C++ built with torch.utils.cpp_extension.\n"
    return "- It runs on one NVIDIA GPU; inputs and parameters are there already.\n"
