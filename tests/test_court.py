"""What a stage has judged is judged problem by problem, so that what is known of a reference serves all candidates."""

from pathlib import Path
from typing import ClassVar

import pytest

from flows.engine import Stage
from flows.parts.judging import Court
from tasks.judge.verdict import Verdict
from tasks.params import load_params
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate
from tests.training_builders import problem, verdict

PARAMS = load_params()


class NotingJudge:
    device, protocol, workers = "test", "test", 1
    environment: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        self.asked: list[str] = []

    def judge(self, problem: Problem, candidate: Candidate, **_: object) -> Verdict:
        self.asked.append(candidate.source)
        return verdict(candidate, speedup=float(len(candidate.source)))


def test_candidates_are_judged_problem_by_problem_and_answered_in_the_order_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dvc.yaml").write_text("stages: {evaluate: {params: [seed]}}")
    stage = Stage(name="evaluate", params=PARAMS, key="k", folder=tmp_path / "work", run_id="run-1", started_at=1.7e9)
    problems = {f"level1/{name}": problem(name) for name in ("one", "two")}
    candidates = [
        Candidate(problem_id=f"level1/{name}", source=text, origin="test")
        for name, text in (("two", "a"), ("one", "bb"), ("two", "ccc"), ("one", "dddd"))
    ]
    judge = NotingJudge()
    court = Court(stage, judge, problems, known=(), journal="v", workers=1)
    assert [each.speedup for each in court.judge(candidates)] == [1.0, 2.0, 3.0, 4.0]
    assert judge.asked == ["a", "ccc", "bb", "dddd"]
    court.close()
