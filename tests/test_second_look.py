"""A speedup that jumps is timed again in fresh processes before it is believed."""

import dataclasses
from collections.abc import Iterator

import pytest

from tasks.judge import timing
from tasks.judge.judge import Judge
from tasks.judge.verdict import Check, Status, Verdict
from tests.judge_builders import KERNELS, PARAMS, kernel

SAME = kernel(KERNELS / "honest/same.py")
ANY_BEST = 0.01  # every speedup is a jump over it
PAIRWISE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return (x[:, None, :] + x[None, :, :]).mean(dim=(0, 1))


def get_inputs():
    return [torch.randn(256, 128)]


def get_init_inputs():
    return []
"""
AT_ONCE = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return 2 * x.mean(dim=0)
"""


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(PARAMS) as judge:
        yield judge


@pytest.fixture(scope="module")
def strict_judge() -> Iterator[Judge]:
    """Takes no two sessions for equal."""
    with Judge(dataclasses.replace(PARAMS, second_look_tolerance=1e-9)) as judge:
        yield judge


def second_look(verdict: Verdict) -> Check | None:
    if any(check.name == "settled" and not check.passed for check in verdict.checks):
        pytest.skip("the machine is too busy to time anything")
    return next((check for check in verdict.checks if check.name == "second_look"), None)


def test_an_ordinary_speedup_is_timed_once(judge: Judge) -> None:
    assert second_look(judge.judge(SAME.problem, SAME.candidate, seed=0)) is None


def test_a_jump_over_the_best_is_timed_in_fresh_processes(judge: Judge) -> None:
    check = second_look(judge.judge(SAME.problem, SAME.candidate, seed=0, best_speedup=ANY_BEST))
    assert check is not None
    assert "more than 2 times the best so far" in check.evidence
    assert "in fresh processes" in check.evidence


def test_two_sessions_that_disagree_make_an_unstable_verdict(strict_judge: Judge) -> None:
    verdict = strict_judge.judge(SAME.problem, SAME.candidate, seed=0, best_speedup=ANY_BEST)
    check = second_look(verdict)
    assert verdict.status is Status.UNSTABLE
    assert check is not None
    assert not check.passed
    assert "they differ by more than 0%" in verdict.detail


def test_of_looks_that_are_all_far_above_any_noise_the_least_is_paid(strict_judge: Judge) -> None:
    problem = dataclasses.replace(SAME.problem, source=PAIRWISE)
    candidate = dataclasses.replace(SAME.candidate, source=AT_ONCE)
    verdict = strict_judge.judge(problem, candidate, seed=0)
    check = second_look(verdict)
    assert verdict.status is Status.CORRECT
    assert check is not None
    looks = [float(words.split("x")[0]) for words in check.evidence.split("; ")[1:3]]
    assert (verdict.speedup or 0.0) <= min(looks) + 0.01
    assert check.evidence.endswith("; the least is paid")


@pytest.mark.parametrize(
    ("one", "other", "agrees"),
    [(3.0, 3.0, True), (3.3, 3.0, True), (3.0, 3.3, True), (3.0, 3.31, False), (0.5, 3.0, False)],
)
def test_sessions_agree_within_the_tolerance(one: float, other: float, agrees: bool) -> None:
    assert timing.agree(one, other, tolerance=0.1) is agrees


def test_the_lesser_claim_is_paid() -> None:
    assert timing.nearer_to_one(3.1, 3.3)
    assert not timing.nearer_to_one(0.4, 0.45)
    assert timing.nearer_to_one(1.1, 0.8)
