"""Small problems, policies and verdicts for the tests of training."""

from tasks.judge.verdict import Status, Timing, Verdict
from tasks.params import PolicyParams
from tasks.problems.problem import Problem, Split
from tasks.training.policy import Policy, new_policy
from tasks.variants.candidate import Candidate
from tasks.variants.prompts import Exemplar

SCALED = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        out = self.linear(x)
        return torch.relu(out) * 2.0


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return [8]
"""

SCALED_IN_PLACE = """import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        out = self.linear(x)
        return out.relu_().mul_(2.0)
"""

SCALED_BY_CLAMP = SCALED_IN_PLACE.replace("out.relu_()", "out.clamp_(min=0.0)")


def problem(name: str = "scaled", source: str = SCALED) -> Problem:
    return Problem(problem_id=f"level1/{name}", level=1, family=name, split=Split.TRAIN, source=source)


def exemplar(source: str = SCALED_IN_PLACE, *, speedup: float = 2.0) -> Exemplar:
    candidate = Candidate(problem_id="level1/scaled", source=source, origin="test")
    return Exemplar(candidate_id=candidate.candidate_id, source=source, speedup=speedup)


def policy_params(**changes: object) -> PolicyParams:
    values = {
        "model": None,
        "prompt_style": "compact",
        "vocab_size": 420,
        "hidden_size": 32,
        "layers": 2,
        "heads": 2,
        "context_tokens": 400,
        "completion_tokens": 24,
        "threads": 1,
    }
    return PolicyParams(**(values | changes))


def policy(*, seed: int = 0, **changes: object) -> Policy:
    corpus = [SCALED, SCALED_IN_PLACE, SCALED_BY_CLAMP] * 3
    return new_policy(corpus, policy_params(**changes), seed=seed)


def verdict(candidate: Candidate, *, speedup: float | None, failure: Status = Status.CRASHED) -> Verdict:
    """A verdict of that speedup, or that failure."""
    timing = None
    if speedup is not None:
        timing = Timing(baseline="eager", reference_ms=(speedup,), candidate_ms=(1.0,))
    return Verdict(
        candidate_id=candidate.candidate_id,
        problem_id=candidate.problem_id,
        status=Status.CORRECT if timing else failure,
        device="test",
        protocol="test",
        timing=timing,
        seconds=0.0,
        judged_at=0.0,
    )
