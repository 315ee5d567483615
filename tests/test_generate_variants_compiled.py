"""The stage generate_variants with the compiler: what a killed run compiled is there, and what is missing is said."""

import shutil
from pathlib import Path

import pytest
from stage_runs import PROBLEM_ID, one_stage

from flows.engine import Stage
from flows.generate_variants import _compiled
from tasks.params import load_params
from tests.training_builders import problem

PROBLEMS = {PROBLEM_ID: problem()}


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    one_stage(tmp_path)
    monkeypatch.chdir(tmp_path)
    params = load_params()
    return Stage(name="generate_variants", params=params, key="k", folder=tmp_path, run_id="run-1", started_at=1.0)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ builds the kernels, and is not installed")
def test_what_was_compiled_before_a_kill_is_not_compiled_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _compiled(stage, PROBLEMS)
    assert [candidate.recipe[0] for candidate in before][:1] == ["inductor"]
    monkeypatch.setenv("PATH", "")  # nothing could be compiled now
    assert _compiled(stage, PROBLEMS) == before


def test_what_nothing_was_compiled_for_is_named_with_the_reason(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert _compiled(stage, PROBLEMS) == []
    said = capsys.readouterr().err
    assert f"nothing compiled for 1 problem(s), such as {PROBLEM_ID}: g++, which builds the candidates" in said
