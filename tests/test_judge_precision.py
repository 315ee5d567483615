"""How exactly a candidate must compute is the problem's to say: fp32 unless it says otherwise."""

import textwrap
from collections.abc import Iterator

import pytest

from tasks.errors import ProblemError
from tasks.judge.judge import Judge
from tasks.judge.verdict import Status
from tasks.variants.candidate import Candidate
from tests.judge_builders import PARAMS, problem_of

REFERENCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(192, 128)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(128, 192)]
"""
CANDIDATE = """
import torch
import torch.nn as nn


def rounded(x, bits):
    half = 1 << (23 - bits)
    return (((x.detach().view(torch.int32) + half) >> (24 - bits)) << (24 - bits)).view(torch.float32)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(192, 128)

    def forward(self, x):
        weight, bias = self.linear.weight, self.linear.bias
        BODY
"""
BODIES = {
    "single": "return torch.relu(x @ weight.t() + bias)",
    "eleven bits": "return torch.relu(rounded(x, 11) @ rounded(weight, 11).t() + bias)",
    "half": "return torch.relu(torch.nn.functional.linear(x.half(), weight.half(), bias.half())).float()",
    "bfloat16": "return torch.relu(nn.functional.linear(x.bfloat16(), weight.bfloat16(), bias.bfloat16())).float()",
    "bfloat16 out": "return torch.relu(torch.nn.functional.linear(x.bfloat16(), weight.bfloat16(), bias.bfloat16()))",
    "four bits": "return torch.relu(rounded(x, 4) @ rounded(weight, 4).t() + bias)",
    "autocast": "with torch.autocast('cpu', torch.bfloat16):\n            return torch.relu(self.linear(x)).float()",
    "two thirds": "return torch.relu(x[:, :128] @ weight[:, :128].t() + bias)",
}
RIGHT = {
    "fp32": {"single"},
    "tf32": {"single", "eleven bits", "half"},
    "fp16": {"single", "eleven bits", "half"},
    "bf16": {"single", "eleven bits", "half", "bfloat16", "bfloat16 out", "autocast"},
}
TOO_NEAR = {("tf32", "half"), ("fp16", "bfloat16"), ("fp16", "autocast"), ("fp16", "bfloat16 out")}


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(PARAMS) as judge:
        yield judge


@pytest.mark.parametrize(
    ("precision", "body"),
    [(precision, body) for precision in RIGHT for body in BODIES if (precision, body) not in TOO_NEAR],
)
def test_a_candidate_computes_as_exactly_as_the_problem_asks(judge: Judge, precision: str, body: str) -> None:
    problem = problem_of(REFERENCE, precision=precision)
    source = textwrap.dedent(CANDIDATE).replace("BODY", BODIES[body])
    verdict = judge.judge(problem, Candidate(problem_id=problem.problem_id, source=source, origin="test"), seed=0)
    if body in RIGHT[precision]:
        assert verdict.status in (Status.CORRECT, Status.UNSTABLE), verdict.detail
    else:
        assert verdict.status is Status.WRONG_OUTPUT, verdict.checks


def test_the_same_text_at_another_precision_is_another_problem() -> None:
    hashes = {problem_of(REFERENCE, precision=precision).problem_hash for precision in RIGHT}
    assert len(hashes) == len(RIGHT)


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(ProblemError, match=r"fp8.*there are: fp32"):
        problem_of(REFERENCE, precision="fp8")
