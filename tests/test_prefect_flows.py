"""The chain and single stages as runs on a real Prefect server, with real DVC and stages that do next to nothing."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from flows.stages import STAGES
from tests.prefect_server import prefect_server

ROOT = Path.cwd()

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The API address of a Prefect server with a home of its own."""
    with prefect_server(tmp_path_factory.mktemp("prefect")) as url:
        yield url


@pytest.fixture
def project(tmp_path):
    """A DVC project with the real stage names, each of which copies a number."""
    stages = {}
    previous = "number"
    (tmp_path / "number").write_text("1")
    for stage in STAGES:
        stages[stage] = {"cmd": f"cp {previous} {stage}.txt", "deps": [previous], "outs": [f"{stage}.txt"]}
        previous = f"{stage}.txt"
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump({"stages": stages}))
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc" / "config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
    return tmp_path


def run_pipeline(project: Path, server: str, *arguments: str) -> subprocess.CompletedProcess:
    environment = os.environ | {"PREFECT_API_URL": server, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "flows.pipeline", *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def task_states(server: str) -> list[tuple[str, str]]:
    """(stage, state) of the newest flow run's tasks, in order."""
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
    from prefect.client.schemas.sorting import FlowRunSort, TaskRunSort

    with SyncPrefectClient(server) as client:
        newest = client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC, limit=1)[0]
        runs = client.read_task_runs(
            flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[newest.id])),
            sort=TaskRunSort.EXPECTED_START_TIME_ASC,
        )
    return [(run.name, run.state.name) for run in runs]


def settled_states(server: str, expected: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The states once the server has digested its events, which it does a moment after the run has ended."""
    deadline = time.monotonic() + 20
    while (states := task_states(server)) != expected and time.monotonic() < deadline:
        time.sleep(0.3)
    return states


def test_every_stage_is_a_run_and_a_skipped_one_is_cached(project, server):
    first = run_pipeline(project, server)
    assert first.returncode == 0, first.stderr
    completed = [(stage, "Completed") for stage in STAGES]
    assert settled_states(server, completed) == completed
    (project / "filter_variants.txt").unlink()  # DVC restores it from its cache: nothing has changed
    second = run_pipeline(project, server)
    assert second.returncode == 0, second.stderr
    cached = [(stage, "Cached") for stage in STAGES]
    assert settled_states(server, cached) == cached


def test_until_stops_after_the_stage_named(project, server):
    run = run_pipeline(project, server, "--until", "sft")
    assert run.returncode == 0, run.stderr
    assert (project / "sft.txt").exists()
    assert not (project / "self_supervised.txt").exists()


def test_a_failing_stage_fails_the_run_and_nothing_after_it_is_started(project, server):
    document = yaml.safe_load((project / "dvc.yaml").read_text())
    document["stages"]["sft"]["cmd"] = "echo the reason; exit 3"
    (project / "dvc.yaml").write_text(yaml.safe_dump(document))
    run = run_pipeline(project, server)
    assert run.returncode != 0
    assert "the reason" in run.stdout + run.stderr
    expected = [("generate_variants", "Completed"), ("filter_variants", "Completed"), ("sft", "Failed")]
    assert settled_states(server, expected) == expected


def test_a_single_stage_is_a_flow_run_when_there_is_a_server(tmp_path, server):
    from prefect.client.orchestration import SyncPrefectClient

    shutil.copy(ROOT / "params.yaml", tmp_path)
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump({"stages": {"sft": {"deps": [], "params": ["sft"]}}}))
    program = (
        "from flows.engine import run_stage\n"
        "def sft(stage):\n    stage.write_json('metrics.json', {})\n"
        "run_stage('sft', sft)\n"
    )
    (tmp_path / "program.py").write_text(program)
    environment = os.environ | {"PREFECT_API_URL": server, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "data" / "sft" / "metrics.json").exists()
    with SyncPrefectClient(server) as client:
        assert "sft" in [flow_run.name for flow_run in client.read_flow_runs()]
