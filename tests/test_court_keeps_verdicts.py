"""What was judged to the end is kept, whatever happened to the candidates beside it."""

import threading
from pathlib import Path
from typing import ClassVar

import pytest

from flows.engine import Stage
from flows.parts.journal import read_rows
from flows.parts.judging import Court
from tasks.errors import MachineError
from tasks.judge.verdict import Verdict
from tasks.params import load_params
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate
from tests.training_builders import problem, verdict

PARAMS = load_params()


class HalfBrokenJudge:
    """Breaks on one text while others are being judged, which takes until somebody has noticed."""

    device, protocol = "test", "test"
    environment: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._are_judged = threading.Barrier(3)
        self._is_broken = threading.Event()

    def judge(self, problem: Problem, candidate: Candidate, **_: object) -> Verdict:
        self.asked.append(candidate.source)
        if len(self.asked) <= 3:
            self._are_judged.wait(20)
        if candidate.source in ("breaks", "breaks later"):
            if candidate.source == "breaks":
                threading.Timer(0.5, self._is_broken.set).start()
            else:
                self._is_broken.wait(20)
            raise MachineError(f"the device is gone: {candidate.source}")
        self._is_broken.wait(20)
        return verdict(candidate, speedup=2.0)


@pytest.fixture
def court_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("dvc.yaml").write_text("stages: {evaluate: {params: [seed]}}")
    stage = Stage(name="evaluate", params=PARAMS, key="k", folder=tmp_path / "work", run_id="run-1", started_at=1.7e9)

    def made(judge: object) -> Court:
        return Court(stage, judge, {"level1/one": problem("one")}, known=(), journal="v.jsonl", workers=3)

    return made


def candidates(*texts: str) -> list[Candidate]:
    return [Candidate(problem_id="level1/one", source=text, origin="test") for text in texts]


def test_verdicts_that_were_under_way_when_another_failed_are_kept_and_not_asked_for_again(tmp_path, court_of) -> None:
    asked = candidates("breaks", "a", "bb", "never begun", "nor this", "nor that", "nor these", "nor those")
    judge = HalfBrokenJudge()
    court = court_of(judge)
    with pytest.raises(MachineError, match="the device is gone: breaks"):
        court.judge(asked)
    kept = {row["candidate_id"] for row in read_rows(tmp_path / "work" / "v.jsonl")}
    assert {each.candidate_id for each in asked[1:3]} <= kept
    assert "nor those" not in judge.asked
    court.judge(asked[1:3])
    assert (judge.asked.count("a"), judge.asked.count("bb")) == (1, 1)
    court.close()


def test_the_first_failure_is_raised_though_others_fail_after_it(tmp_path, court_of) -> None:
    asked = candidates("breaks", "breaks later", "a")
    court = court_of(HalfBrokenJudge())
    with pytest.raises(MachineError, match=r"the device is gone: breaks$"):
        court.judge(asked)
    assert [row["candidate_id"] for row in read_rows(tmp_path / "work" / "v.jsonl")] == [asked[2].candidate_id]
    court.close()
