"""What is written to the history besides candidates and verdicts: runs, what policies wrote, and what it all cost."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from functools import cache
from typing import Any

from tasks.errors import RecordError
from tasks.judge.verdict import Verdict

GENERATION, TRAINING = "generation", "training"
"""What costs are for: writing candidates, and teaching a policy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One execution of a stage, resumed or not."""

    run_id: str
    """Chosen by the caller from what makes two runs the same: stage, params, inputs. A resumed stage keeps its id."""
    stage: str
    seed: int
    params: Mapping[str, Any]
    """The sections of params.yaml the stage reads, as json.dumps takes them."""
    started_at: float
    """Unix time in seconds. A resumed run keeps the time it was first recorded with."""
    git_commit: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    """Software the stage ran with, such as {"torch": "2.13.0"}."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One completion a policy wrote, and the prompt that asked for it."""

    problem_id: str
    candidate_id: str
    """The candidate that was read out of the completion."""
    prompt: str
    exemplar_ids: tuple[str, ...] = ()
    """Candidates the prompt shows, in the order shown."""
    completion: str
    policy: str
    """The policy's name, such as "sft"."""
    temperature: float
    """0 for greedy decoding."""
    step: int
    """Training step, iteration or pass within the run."""
    number: int
    """Place within the step. Run, step and number name a sample: one recorded twice is recorded once."""

    @property
    def prompt_id(self) -> str:
        """Content hash of the prompt and what it is about."""
        return _content_hash([self.problem_id, self.prompt, self.exemplar_ids])


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What a run spent besides judging, whose seconds stand in the verdicts."""

    purpose: str
    """GENERATION or TRAINING."""
    candidate_id: str | None = None
    """What it bought, where it bought one candidate."""
    seconds: float = 0.0
    """Of this machine; waiting for somebody else's takes none."""
    prompt_tokens: int = 0
    answer_tokens: int = 0
    price_usd: float = 0.0
    spent_at: float
    """Unix time in seconds. Costs of one run that are alike in all of this are one cost."""

    def __post_init__(self) -> None:
        amounts = (self.seconds, self.prompt_tokens, self.answer_tokens, self.price_usd)
        if not all(math.isfinite(amount) and amount >= 0 for amount in amounts):
            raise RecordError(f"a cost is finite and at least 0, but {self.purpose} has {amounts}")

    def cost_id(self, run_id: str) -> str:
        """Content hash of the cost and who paid it."""
        return _content_hash([run_id, *astuple(self)])


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLink:
    """What another system calls a run."""

    system: str
    """"mlflow" or "dvc"."""
    identifier: str
    """For MLflow the id of the run; for DVC an output and its MD5, such as "data/sft/policy@d41d....dir"."""


def verdict_id(verdict: Verdict) -> str:
    """Content hash of everything the verdict says: one read back from a stage's file is the same verdict."""
    return _content_hash(verdict.to_json())


def environment_id(verdict: Verdict) -> str:
    """Content hash of the device and the software on it."""
    return _environment_id(verdict.device, tuple(sorted(verdict.environment.items())))


@cache  # a process judges in one environment, or in a few
def _environment_id(device: str, software: tuple[tuple[str, str], ...]) -> str:
    return hashlib.sha256(f"{device}\n{json.dumps(dict(software))}".encode()).hexdigest()[:16]


def _content_hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
