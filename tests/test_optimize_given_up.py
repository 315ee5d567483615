"""A drop-in that gives its fast code up where it is judged is not only slow: the report and the console say why."""

import json
from pathlib import Path

import pytest

from flows.cli import main
from flows.optimizing.judging import FINAL
from tasks.judge.verdict import Status
from tasks.search import drop_in
from tasks.search.drop_in import ORIGIN
from tasks.search.given_up import WORDS
from tasks.search.search import SCREEN
from tests.optimize_builders import GivenJudges, by_recipe, optimized, report_on, softmax_file

# Less than 3x apart, or a second look would have to agree, beside whatever else this machine does.
SLOW = """import torch
from torch import nn


class Slow(nn.Module):
    def forward(self, x):
        return sum(torch.exp(x.sin()) for _ in range(2))


def example_inputs():
    return torch.randn(128, 512)
"""
FAST = """from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, x):
        {called}
        return 2 * x.sin().exp()
"""
REFUSES = 'assert "ReferenceSlow" not in globals(), "not beside\\n the reference"'


def asked_why(judges: GivenJudges) -> list[str]:
    """Texts that were judged to see whether they give up."""
    return [candidate.source for rung, candidate in judges.asked if rung == SCREEN and candidate.origin == ORIGIN]


@pytest.mark.parametrize(
    "candidate",
    [
        pytest.param(FAST.format(made=REFUSES, called="pass"), id="when it is made"),
        pytest.param(FAST.format(made="pass", called=REFUSES), id="when it is called"),
    ],
)
def test_why_a_drop_in_gave_up_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], candidate: str
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "candidates").mkdir()
    (tmp_path / "candidates" / "sum.py").write_text(candidate)
    monkeypatch.chdir(tmp_path)
    quick = ["--provider", "candidates", "--baselines", "eager", "--window-s", "0", "--workers", "1"]
    assert main(["optimize", "slow.py", *quick]) == 4, (tmp_path / "slow-optimized" / "report.md").read_text()
    words = "its drop-in gives that up and runs your own forward: not beside"
    assert words in capsys.readouterr().out
    assert words in (tmp_path / "slow-optimized" / "report.md").read_text()
    assert words in json.loads((tmp_path / "slow-optimized" / "verdict.json").read_text())["not_written_because"]


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
