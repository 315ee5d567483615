"""Constructors may be given objects, such as a configuration: each program makes them of the class that it has."""

from collections.abc import Iterator

import pytest

from tasks.judge import study
from tasks.judge.judge import Judge
from tasks.judge.verdict import Status
from tasks.variants.candidate import Candidate
from tests.judge_builders import PARAMS, RIGHT, problem_of

CONFIG = """\
import enum
import functools
import time
import types
from dataclasses import dataclass

import torch
import torch.nn as nn


class Act(enum.Enum):
    RELU = "relu"
    TANH = "tanh"


@dataclass
class Config:
    width: int
    act: Act = Act.TANH

    @property
    def twice(self):
        return 2 * self.width
"""
MODEL = """\

class Model(nn.Module):
    def __init__(self, config, norm):
        super().__init__()
        self.config = config
        self.linear = nn.Linear(config.width, config.twice)
        self.norm = norm(config.twice)

    def forward(self, x):
        y = self.norm(self.linear(x))
        return torch.tanh(y) if self.config.act is Act.TANH else torch.relu(y)
"""
GIVEN = """\


def get_inputs():
    return [torch.randn(16, 24)]


def get_init_inputs():
    return [Config(24), functools.partial(nn.LayerNorm, eps=1e-3)]
"""
PROBLEM = problem_of(CONFIG + MODEL + GIVEN)
FASTER = (CONFIG + MODEL).replace("class Model(", "class ModelNew(")


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(PARAMS) as judge:
        yield judge


def candidate(source: str) -> Candidate:
    return Candidate(problem_id=PROBLEM.problem_id, source=source, origin="tests")


def test_a_program_is_given_a_configuration_of_its_own_class(judge: Judge) -> None:
    verdict = judge.judge(PROBLEM, candidate(FASTER), seed=0)
    assert verdict.status in RIGHT, verdict.detail


def test_what_a_configuration_holds_matters(judge: Judge) -> None:
    verdict = judge.judge(PROBLEM, candidate(FASTER.replace("is Act.TANH", "is Act.RELU")), seed=0)
    assert verdict.status is Status.WRONG_OUTPUT


def test_a_program_without_the_class_is_told_which_one_it_lacks(judge: Judge) -> None:
    verdict = judge.judge(PROBLEM, candidate(FASTER.replace("class Config", "class Settings")), seed=0)
    assert verdict.status is Status.CRASHED
    assert "the program defines no Config, which its constructor or forward is given" in verdict.detail


def test_what_a_reference_compiles_at_its_first_call_does_not_make_it_too_slow(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "MAX_CALL_MS", 400.0)
    call = "    def forward(self, x):\n"
    at_first = f"{call}        if not (IS_COMPILED or IS_COMPILED.append(1)):\n            time.sleep(0.6)\n"
    slow = (CONFIG + "\n\nIS_COMPILED = []\n" + MODEL).replace(call, at_first)
    verdict = judge.judge(problem_of(slow + GIVEN, name="compiles"), candidate(FASTER), seed=0)
    assert verdict.status in RIGHT, verdict.detail
    always = slow.replace("if not (IS_COMPILED or IS_COMPILED.append(1)):", "if True:")
    verdict = judge.judge(problem_of(always + GIVEN, name="slow"), candidate(FASTER), seed=0)
    assert verdict.status is Status.BAD_PROBLEM
    assert "a call of the reference takes 0.6 s, 0.4 at most" in verdict.detail
