"""What a call does besides the numbers it returns: a drop-in that leaves it out is not written."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from optimize_builders import GivenJudges, by_recipe, optimized, report_on, softmax_file

from flows.optimizing.judging import EFFECTS
from tasks.judge.judge import Judge
from tasks.judge.verdict import Status
from tasks.params import JudgeParams
from tasks.search.drop_in import drop_in
from tasks.search.effects import effects_case
from tasks.search.survey import survey
from tasks.search.texts import problem_texts
from tasks.search.user_file import read_user_file
from tasks.variants.candidate import Candidate
from tests.judge_builders import RIGHT

FILE = """from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn as nn


@dataclass
class Held:
    parts: list


class Out(NamedTuple):
    y: torch.Tensor
    more: dict
    held: Held


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(32, 32)
        self.calls = 0
        self.register_buffer("count", torch.zeros((), dtype=torch.long))
        self.register_buffer("mean", torch.zeros(32), persistent=False)

    def forward(self, x):
        y = self.lin(x)
        self.count += 1
        self.mean = 0.9 * self.mean + 0.1 * y.mean(0)
        self.calls = self.calls + 1
        self.last = y.detach()
        self.__mean = y.mean()
        return Out(y, {"a": y * 2, "b": x + y}, Held([x - y]))


def example_inputs():
    return torch.randn(16, 32)
"""
RETURNED = 'return Out(y, {"a": y * 2, "b": x + y}, Held([x - y]))'
SAME = f"""
        y = self.lin(x)
        self.count += 1
        self.mean = 0.9 * self.mean + 0.1 * y.mean(0)
        self.calls = self.calls + 1
        self.last = y.detach()
        self.__mean = y.mean()
        {RETURNED}"""
OTHERS = {
    "another container": SAME.replace(RETURNED, RETURNED.replace("return Out", "return ")),
    "a list for a tuple": SAME.replace(RETURNED, "return [*Out(y, {'a': y * 2, 'b': x + y}, Held([x - y]))]"),
    "another container in a data class": SAME.replace("[x - y]", "(x - y,)"),
    "another order of keys": SAME.replace(RETURNED, 'return Out(y, {"b": x + y, "a": y * 2}, Held([x - y]))'),
    "a buffer that does not count": SAME.replace("        self.count += 1\n", ""),
    "a buffer that is not replaced": SAME.replace("self.mean = 0.9 * self.mean + 0.1 * y.mean(0)", "pass"),
    "a number that does not count": SAME.replace("self.calls = self.calls + 1", "pass"),
    "an attribute that is not kept": SAME.replace("self.last = y.detach()", "pass"),
    "an attribute that holds something else": SAME.replace("y.detach()", "x.detach()"),
    "a private attribute that holds something else": SAME.replace("y.mean()", "x.mean()"),
    "a private attribute that is not set": SAME.replace("        self.__mean = y.mean()\n", ""),
}


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(JudgeParams(trials=2, rounds=5, settled_error=0.12)) as opened:
        yield opened


def status_of(judge: Judge, folder: Path, forward: str) -> tuple[Status, str]:
    path = folder / "counting.py"
    path.write_text(FILE)
    file = read_user_file(path)
    facts = survey(file)
    texts = problem_texts(file, facts)
    written = f"class ModelNew(Model):\n    def forward(self, x):{forward}\n"
    source = f"{FILE.replace('Counting', 'Model')}\n\n{written}"
    candidate = Candidate(problem_id=texts.shown.problem_id, source=source, origin="test")
    made = drop_in(file, facts, candidate, problem_id=texts.judged.problem_id)
    verdict = judge.judge(*effects_case(file, texts, made), seed=0)
    return verdict.status, verdict.detail


def test_who_leaves_what_the_original_leaves_is_right(judge: Judge, tmp_path: Path) -> None:
    status, detail = status_of(judge, tmp_path, SAME)
    assert status in RIGHT, detail


@pytest.mark.parametrize("name", OTHERS)
def test_who_leaves_something_else_is_not(judge: Judge, tmp_path: Path, name: str) -> None:
    assert status_of(judge, tmp_path, OTHERS[name])[0] is Status.WRONG_OUTPUT


def test_a_drop_in_that_leaves_something_else_is_told_of_and_the_next_one_tried(tmp_path: Path) -> None:
    asked: list[str] = []

    def speeds(rung: str, candidate: Candidate) -> float | Status:
        if rung == EFFECTS:
            asked.append(candidate.candidate_id)
            return Status.WRONG_OUTPUT if len(asked) == 1 else 1.0
        return by_recipe(call_softmax=3.0, reduction_in_c=3.2)(rung, candidate)

    file = softmax_file(tmp_path)
    outcome = optimized(file, GivenJudges(speeds), candidates=4)
    assert outcome.winner is not None
    assert outcome.winner[1].candidate.recipe[-1] == "call_softmax"
    assert "returns other containers, or leaves other buffers or attributes" in report_on(file, outcome)


def test_what_cannot_be_compared_is_written_and_said_to_be_so(tmp_path: Path) -> None:
    def speeds(rung: str, candidate: Candidate) -> float | Status:
        return Status.BAD_PROBLEM if rung == EFFECTS else by_recipe(call_softmax=3.0)(rung, candidate)

    file = softmax_file(tmp_path)
    outcome = optimized(file, GivenJudges(speeds))
    assert outcome.winner is not None
    assert "buffers and attributes could not be compared" in report_on(file, outcome)
