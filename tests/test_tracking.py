"""What reaches MLflow, and that a stage never notices when nothing does."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tasks import tracking
from tasks.tracking import EVENTS, RUN_ID_TAG, tracked

PARAMS = {"sft": {"steps": 400}, "seed": 0}


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(tracking, "FINISH_S", 120.0)  # the sender is nice, and a busy machine is not
    return tmp_path


def pending(project):
    return sorted((project / "mlruns" / "pending").iterdir())


def runs(project):
    """The runs MLflow knows, oldest first."""
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{project}/mlflow.db")
    experiment = client.get_experiment_by_name(tracking.EXPERIMENT)
    return client, client.search_runs([experiment.experiment_id], order_by=["attributes.start_time ASC"])


class Plot:
    def to_html(self):
        return "<p>a plot</p>"


@pytest.mark.slow
def test_everything_a_stage_tracks_reaches_mlflow(project):
    (project / "report.html").write_text("<p>a report</p>")
    with tracked("sft", run_id="abc", params=PARAMS) as tracker:
        for step in range(30):
            tracker.log_metrics({"loss": 1 / (step + 1), "speedup/geomean": 1.5}, step=step)
        tracker.log_figure(Plot(), "learning")
        tracker.log_figure("<p>a page</p>", "page")
        tracker.log_artifact(project / "report.html")
        tracker.log_artifact(project / "was never written")
    client, (run,) = runs(project)
    assert tracker.mlflow_run_id == run.info.run_id
    assert run.info.run_name == "sft"
    assert run.info.status == "FINISHED"
    assert run.data.params == {"sft.steps": "400", "seed": "0"}
    assert run.data.tags[RUN_ID_TAG] == "abc"
    history = client.get_metric_history(run.info.run_id, "loss")
    assert [(metric.step, metric.value) for metric in history] == [(step, 1 / (step + 1)) for step in range(30)]
    artifacts = Path(run.info.artifact_uri.removeprefix("file://"))
    assert project in artifacts.parents
    assert (artifacts / "report.html").read_text() == "<p>a report</p>"
    assert {file.name for file in (artifacts / "figures").iterdir()} == {"learning.html", "page.html"}
    assert pending(project) == []


KILLED_STAGE = """
import os, signal
from tasks.tracking import tracked
with tracked("sft", run_id="abc", params={}) as tracker:
    for step in range(50):
        tracker.log_metrics({"loss": step}, step=step)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_killed_stage_loses_no_number_and_continues_its_run(project):
    stage = subprocess.run([sys.executable, "-c", KILLED_STAGE])
    assert stage.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 60
    while pending(project) and time.monotonic() < deadline:
        time.sleep(0.2)
    client, (killed,) = runs(project)
    assert killed.info.status == "KILLED"
    assert len(client.get_metric_history(killed.info.run_id, "loss")) == 50
    with tracked("sft", run_id="abc", params={}) as tracker:
        for step in range(40, 51):  # those after its last checkpoint are done again
            tracker.log_metrics({"loss": step}, step=step)
    _, (continued,) = runs(project)
    assert continued.info.run_id == killed.info.run_id
    assert continued.info.status == "FINISHED"
    assert continued.data.metrics["loss"] == 50
    steps = [metric.step for metric in client.get_metric_history(continued.info.run_id, "loss")]
    assert sorted(steps) == list(range(51))


def refused_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def refusing_server(project):
    return f"http://127.0.0.1:{refused_port()}"


def database_that_is_none(project):
    (project / "broken.db").write_text("no database\n" * 1000)
    return f"sqlite:///{project}/broken.db"


def database_in_no_folder(project):
    return f"sqlite:///{project}/missing/mlflow.db"


def track_a_little():
    with tracked("sft", run_id="abc", params=PARAMS) as tracker:
        for step in range(20):
            tracker.log_metrics({"loss": 1.0}, step=step)


@pytest.mark.parametrize("place", [refusing_server, database_that_is_none, database_in_no_folder])
def test_numbers_that_cannot_be_sent_are_kept_and_the_stage_is_warned_once(project, monkeypatch, caplog, place):
    uri = place(project)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    track_a_little()
    (warning,) = caplog.messages
    (folder,) = pending(project)
    assert uri in warning
    assert f"-m tasks.tracking {folder}" in warning
    events = [json.loads(line) for line in (folder / EVENTS).read_text().splitlines()]
    assert sum(event["event"] == "metrics" for event in events) == 20


@pytest.mark.slow
def test_what_was_kept_is_sent_by_the_command_the_warning_names(project, monkeypatch, caplog):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", refusing_server(project))
    track_a_little()
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    command = re.search(r"to send them: (.*)", caplog.messages[0]).group(1).split()
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    client, (run,) = runs(project)
    assert run.info.status == "FINISHED"
    assert len(client.get_metric_history(run.info.run_id, "loss")) == 20
    assert pending(project) == []


def test_a_server_that_never_answers_holds_a_stage_up_for_a_limited_time(project, monkeypatch, caplog):
    monkeypatch.setattr(tracking, "FINISH_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{silent.getsockname()[1]}")
        track_a_little()
    assert "more than 1 s" in caplog.messages[0]
    assert len(pending(project)) == 1


def test_a_failing_stage_fails_with_its_own_error(project, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", refusing_server(project))
    with pytest.raises(ZeroDivisionError), tracked("sft", run_id="abc", params=PARAMS):
        _ = 1 / 0
    (folder,) = pending(project)
    assert json.loads((folder / EVENTS).read_text().splitlines()[-1])["status"] == "FAILED"


def test_a_project_that_cannot_be_written_to_keeps_the_numbers_elsewhere(
    project, monkeypatch, caplog, tmp_path_factory
):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", refusing_server(project))
    (project / "mlruns").write_text("a file where the folder should be")
    track_a_little()
    (folder,) = elsewhere.iterdir()
    assert str(folder) in caplog.messages[0]
    assert (folder / EVENTS).stat().st_size > 0


def test_with_nowhere_to_write_the_stage_still_runs_and_is_told(project, monkeypatch, caplog):
    (project / "mlruns").write_text("a file where the folder should be")
    monkeypatch.setattr("tempfile.tempdir", str(project / "missing"))
    with tracked("sft", run_id="abc", params=PARAMS) as tracker:
        tracker.log_metrics({"loss": 1.0})
        tracker.log_figure("<p>a page</p>", "page")
    assert len(caplog.messages) == 1
    assert "lost" in caplog.messages[0]
