"""What run_stage promises: resuming, never mixing experiments, whole outputs, and errors a person can act on."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest
import yaml
from stage_runs import one_stage

from flows.engine import Stage, run_stage
from tasks.errors import ProblemError


@pytest.fixture
def project(tmp_path, monkeypatch):
    one_stage(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    return tmp_path


def set_param(section: str, key: str, value: object) -> None:
    document = yaml.safe_load(Path("params.yaml").read_text())
    document[section][key] = value
    Path("params.yaml").write_text(yaml.safe_dump(document))


def write_result(stage: Stage) -> None:
    stage.write_json("metrics.json", {"run": stage.run_id})


def die_half_way(stage: Stage) -> None:
    (stage.folder / "checkpoint").write_text("half")
    (stage.outputs / "policy").mkdir()
    raise KeyboardInterrupt


def published() -> dict:
    return json.loads(Path("data/sft/metrics.json").read_text())


def test_outputs_appear_under_the_stage_name(project):
    run_stage("sft", write_result)
    assert published()["run"].startswith("sft-")
    assert [path.name for path in Path("data/sft").iterdir()] == ["metrics.json"]


def test_an_interrupted_run_leaves_no_output_and_is_continued(project):
    with pytest.raises(SystemExit):
        run_stage("sft", die_half_way)
    assert not Path("data/sft").exists()
    seen = []
    run_stage("sft", lambda stage: seen.append((stage.folder / "checkpoint").read_text()))
    assert seen == ["half"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda: set_param("sft", "steps", 7), id="a param"),
        pytest.param(lambda: Path("input.txt").write_text("two"), id="an input"),
    ],
)
def test_a_checkpoint_is_never_resumed_after_a_change(project, change):
    with pytest.raises(SystemExit):
        run_stage("sft", die_half_way)
    change()
    seen = []
    run_stage("sft", lambda stage: seen.append((stage.folder / "checkpoint").exists()))
    assert seen == [False]


def test_a_param_of_another_stage_does_not_throw_work_away(project):
    with pytest.raises(SystemExit):
        run_stage("sft", die_half_way)
    set_param("evaluate", "bootstrap", 123)
    seen = []
    run_stage("sft", lambda stage: seen.append((stage.folder / "checkpoint").exists()))
    assert seen == [True]


def test_a_run_killed_after_publishing_but_before_dvc_noted_it_is_not_done_again(project):
    run_stage("sft", write_result)
    first = published()
    shutil.rmtree("data/sft")  # what DVC does before it runs a stage
    run_stage("sft", lambda stage: None)
    assert published() == first


def test_a_run_that_dvc_noted_starts_afresh_when_asked_again(project):
    run_stage("sft", lambda stage: (stage.folder / "checkpoint").touch())
    lock = Path("dvc.lock")
    lock.touch()
    os.utime(lock, (time.time() + 1, time.time() + 1))
    seen = []
    run_stage("sft", lambda stage: seen.append((stage.folder / "checkpoint").exists()))
    assert seen == [False]


def test_an_error_of_ours_is_a_message_with_status_1_and_keeps_the_details(project, capsys):
    def refuse(stage: Stage) -> None:
        raise ProblemError("problem level1/x lacks Model")

    with pytest.raises(SystemExit) as ended:
        run_stage("sft", refuse)
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "sft failed: ProblemError: problem level1/x lacks Model" in said
    assert "Traceback" not in said
    assert "Traceback" in Path("work/sft/error.log").read_text()


def test_a_full_disk_is_told_by_name(project, capsys):
    def fill(stage: Stage) -> None:
        with Path("/dev/full").open("w") as file:
            file.write("x" * 100_000)

    with pytest.raises(SystemExit):
        run_stage("sft", fill)
    assert "No space left on device" in capsys.readouterr().err


def test_a_missing_input_says_what_makes_it(project, capsys):
    Path("input.txt").unlink()
    with pytest.raises(SystemExit):
        run_stage("sft", write_result)
    said = capsys.readouterr().err
    assert "input.txt is missing" in said
    assert "dvc repro" in said


def test_a_dead_prefect_server_is_a_warning_and_the_stage_runs(project, capsys, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    run_stage("sft", write_result)
    assert published()
    assert "no Prefect server answers at http://127.0.0.1:9/api" in capsys.readouterr().err


def test_bad_params_stop_a_stage_before_it_begins(project, capsys):
    set_param("sft", "steps", 0)
    with pytest.raises(SystemExit):
        run_stage("sft", write_result)
    assert "sft.steps" in capsys.readouterr().err
