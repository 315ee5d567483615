"""A drop-in that gives its fast code up where it is judged is not only slow: the report and the console say why."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from flows.optimizing.document import verdict_document
from flows.optimizing.judging import FINAL
from tasks.judge.judge import Judge
from tasks.judge.verdict import Status, Verdict
from tasks.params import JudgeParams
from tasks.problems.problem import Problem
from tasks.search import drop_in
from tasks.search.drop_in import ORIGIN
from tasks.search.found import Scored
from tasks.search.given_up import WORDS
from tasks.search.proposers import Proposer
from tasks.search.search import AGAIN, SCREEN
from tasks.variants.candidate import Candidate
from tests.optimize_builders import GivenJudge, GivenJudges, by_recipe, optimized, report_on, softmax_file

FAST = """import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, x):
        {called}
        return torch.softmax(x, 1)
"""
REFUSES = 'assert "ReferenceSoftmax" not in globals(), "not beside\\n the reference"'


class Proposing(Proposer):
    """Proposes a candidate with this text."""

    name = "candidates"

    def __init__(self, source: str) -> None:
        self.source = source

    def propose(self, found: Sequence[Scored]) -> Candidate | None:
        return None if found else Candidate(problem_id="softmax", source=self.source, origin=self.name)


class JudgesWhoAreTold(GivenJudges):
    """Judges whose speeds are given, whatever else the machine does, but which run what tells whether it gives up."""

    def __init__(self) -> None:
        drop_ins_are_even = {SCREEN: 3.0, AGAIN: 3.0}
        super().__init__(lambda rung, candidate: drop_ins_are_even.get(rung, 1.0))

    def at(self, rung: str) -> GivenJudge:
        return JudgeWhoIsTold(self, rung)


class JudgeWhoIsTold(GivenJudge):
    def judge(self, problem: Problem, candidate: Candidate, *, seed: int, best_speedup: float | None) -> Verdict:
        given = super().judge(problem, candidate, seed=seed, best_speedup=best_speedup)
        if candidate.origin != ORIGIN or self.rung != SCREEN:
            return given
        with Judge(JudgeParams(device="cpu", workers=1, trials=2, rounds=5)) as judge:
            return judge.judge(problem, candidate, seed=seed)


def asked_why(judges: GivenJudges) -> list[str]:
    """Texts that were judged to see whether they give up."""
    return [candidate.source for rung, candidate in judges.asked if rung == SCREEN and candidate.origin == ORIGIN]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(FAST.format(made=REFUSES, called="pass"), id="when it is made"),
        pytest.param(FAST.format(made="pass", called=REFUSES), id="when it is called"),
    ],
)
def test_why_a_drop_in_gave_up_is_said(tmp_path: Path, source: str) -> None:
    judges = JudgesWhoAreTold()
    file = softmax_file(tmp_path)
    outcome = optimized(file, judges, proposers=[Proposing(source)])
    assert len(asked_why(judges)) == 1
    words = "its drop-in gives that up and runs your own forward: not beside"
    assert words in outcome.unwritten
    assert words in report_on(file, outcome)
    assert words in str(verdict_document(file, outcome)["not_written_because"])


def test_a_drop_in_that_stays_fast_is_not_said_to_give_up(tmp_path: Path) -> None:
    judges = JudgesWhoAreTold()
    outcome = optimized(softmax_file(tmp_path), judges, proposers=[Proposing(FAST.format(made="pass", called="pass"))])
    assert len(asked_why(judges)) == 1
    assert "gives that up" not in outcome.unwritten


def test_the_words_are_those_of_the_drop_in() -> None:
    text = Path(drop_in.__file__).with_name("drop_in_class.py").read_text()
    assert text.count("warnings.warn(") == text.count(f" {WORDS}: ") > 0


def test_a_drop_in_that_is_slow_by_itself_is_asked_once_and_not_said_to_give_up(tmp_path: Path) -> None:
    judges = GivenJudges(by_recipe(call_softmax=3.0, call_softmax_drop_in=0.9))
    file = softmax_file(tmp_path)
    outcome = optimized(file, judges)
    (made,) = [candidate for rung, candidate in judges.asked if rung == FINAL]
    assert len(asked_why(judges)) == 1
    assert asked_why(judges)[0].startswith(made.source)
    assert outcome.winner is None
    assert "gives that up" not in report_on(file, outcome)


@pytest.mark.parametrize("speed", [2.0, Status.WRONG_OUTPUT])
def test_a_drop_in_that_is_fast_or_wrong_is_not_asked(tmp_path: Path, speed: float | Status) -> None:
    judges = GivenJudges(by_recipe(call_softmax=3.0, call_softmax_drop_in=speed))
    optimized(softmax_file(tmp_path), judges)
    assert asked_why(judges) == []
