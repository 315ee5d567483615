"""A night as it is: a scheduler that starts a run, real stages, a better policy promoted and a worse one refused."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.prefect_server import prefect_server
from tests.retrain_builders import TRAIN, of_size, project
from tests.training_builders import policy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

NIGHTLY, ALARM = "retrain/nightly", "policy_regressed/alarm"
LIMIT_S = 900.0  # a minute or two on a machine that has nothing else to do
NEW_SIZE = 40
POLICY = "data/contrastive_rl/policy"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A project, the server it is registered with, and the environment of what runs there."""

    root: Path
    url: str
    environment: Mapping[str, str]

    @property
    def registry(self) -> Any:
        from tasks.registry import Registry

        return Registry()

    def client(self) -> Any:
        from prefect.client.orchestration import SyncPrefectClient

        return SyncPrefectClient(self.url)

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def machine(tmp_path_factory) -> Iterator[Machine]:
    """A project under git with a DVC remote, a server, and an untrained policy as champion."""
    folder = tmp_path_factory.mktemp("retrain")
    root = project(folder)
    (root / ".gitignore").write_text("/work/\n/mlruns/\n/mlflow.db*\n/data/history.duckdb*\n/data/problems/inbox/\n")
    with (root / ".dvc" / "config").open("a") as config:
        config.write(f"    remote = store\n['remote \"store\"']\n    url = {folder / 'store'}\n")
    own = {
        "MLFLOW_TRACKING_URI": f"sqlite:///{root}/mlflow.db",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    with (
        pytest.MonkeyPatch.context() as patched,
        prefect_server(folder / "prefect", PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS="2") as url,
    ):
        patched.chdir(root)
        for name, value in own.items():
            patched.setenv(name, value)
        environment = {**os.environ, "PREFECT_API_URL": url}
        environment.pop("PYTHONPATH", None)
        found = Machine(root=root, url=url, environment=environment)
        for command in ("init --quiet", "add .", "-c user.name=a -c user.email=a@b commit --quiet --message first"):
            found.run("git", *command.split())
        make_champion(found, untrained(folder / "untrained"))
        yield found


def untrained(folder: Path) -> Path:
    from tasks.training.policy import save_policy

    save_policy(policy(context_tokens=512, completion_tokens=128), folder)
    return folder


def make_champion(machine: Machine, folder: Path) -> None:
    registry = machine.registry
    run = registry.record("before", tags={}, metrics={}, files={})
    from flows.champion_params import as_tag
    from tasks.params import load_params

    version = registry.register(folder, mlflow_run_id=run, tags=as_tag(load_params().policy))
    registry.promote(version, over=None)


@pytest.fixture(scope="module")
def served(machine) -> Iterator[Machine]:
    """The deployments are registered, and their runs are done until the end of the tests."""
    log = machine.root.parent / "served.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.deployment"],
            cwd=machine.root,
            env=machine.environment,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    wait_for(lambda: "being served" in log.read_text().replace("\n", " ") or process.poll() is not None, limit_s=90)
    assert process.poll() is None, log.read_text()
    yield machine
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def night(served) -> Any:
    """The flow run that the scheduler made and started, with two files in the inbox, once it has ended."""
    inbox = served.root / "data/problems/inbox/level1"
    inbox.mkdir(parents=True)
    (inbox / f"size{NEW_SIZE}.py").write_text(of_size(NEW_SIZE))
    (inbox / "nothing.py").write_text(of_size(NEW_SIZE).replace("* 2.0", "* 0.0"))
    from prefect.client.schemas.schedules import IntervalSchedule

    with served.client() as client:
        nightly = client.read_deployment_by_name(NIGHTLY)
        assert [known.schedule.cron for known in nightly.schedules] == ["0 2 * * *"]
        soon = IntervalSchedule(interval=timedelta(days=1), anchor_date=datetime.now(UTC) + timedelta(seconds=6))
        # What somebody does by clicking.
        client.update_deployment_schedule(nightly.id, nightly.schedules[0].id, schedule=soon)
    return ended_run(served, NIGHTLY)


def wait_for(condition: Any, *, limit_s: float = LIMIT_S) -> Any:
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.3)
    return found


def ended_run(machine: Machine, deployment: str, *, number: int = 1) -> Any:
    """The flow run of a deployment that ended as the n-th, once it has."""
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.client.schemas.sorting import FlowRunSort

    with machine.client() as client:
        chosen = FlowRunFilter(deployment_id={"any_": [client.read_deployment_by_name(deployment).id]})

        def ended() -> Any:
            runs = client.read_flow_runs(flow_run_filter=chosen, sort=FlowRunSort.START_TIME_ASC)
            done = [run for run in runs if run.state.is_final()]
            return done[number - 1] if len(done) >= number else None

        return wait_for(ended)


def artifacts_of(machine: Machine, run: Any) -> dict[str, Any]:
    from prefect.client.schemas.filters import ArtifactFilter

    with machine.client() as client:
        found = client.read_artifacts(artifact_filter=ArtifactFilter(flow_run_id={"any_": [run.id]}))
    return {artifact.key: artifact for artifact in found}


def test_the_scheduler_itself_made_and_started_the_run(night):
    assert night.auto_scheduled
    assert night.created_by is None or night.created_by.type == "SCHEDULE"
    assert night.state.is_completed(), night.state.message


def test_the_new_problem_is_trained_on_and_the_degenerate_one_is_not(night, machine):
    problems = machine.root / "data" / "problems"
    assert (problems / "level1" / f"size{NEW_SIZE}.py").read_text() == of_size(NEW_SIZE)
    assert f"level1/size{NEW_SIZE}" in (machine.root / "data/filter_variants/verdicts.jsonl").read_text()
    (kept,) = (problems / "quarantine" / "level1").glob("nothing.*.py")
    assert "does not depend on its inputs" in kept.with_name(f"{kept.name}.reason.txt").read_text()
    assert not [path for path in (problems / "inbox").rglob("*") if path.is_file()]


def test_the_better_policy_is_promoted_with_all_that_it_was_made_from(night, machine):
    assert night.state.name == "Promoted", night.state.message
    champion = machine.registry.champion()
    assert champion.version == 2
    from tasks.registry_files import policy_digest

    assert champion.digest == policy_digest(machine.root / POLICY)
    assert champion.tags["cuda_l1.compared_with"] == "version 1"
    assert {"cuda_l1.git_commit", "cuda_l1.dvc_lock_sha256", "cuda_l1.params_sha256"} <= set(champion.tags)
    (tag,) = machine.run("git", "tag", "--list").split()
    assert tag.endswith("-champion-2")
    assert "data/problems/level1/size40.py" in machine.run("git", "ls-tree", "-r", "--name-only", tag)
    weights = (machine.root / POLICY / "model.safetensors").read_bytes()
    assert weights in [path.read_bytes() for path in (machine.root.parent / "store").rglob("*") if path.is_file()]


def test_the_run_page_shows_how_it_was_decided(night, machine):
    found = artifacts_of(machine, night)
    expected = {"arrivals", "decision", "problems", "progress", "speedups"}
    assert {f"retrain-{name}" for name in expected} <= set(found)
    assert "# Promoted" in found["retrain-decision"].data
    assert "-champion-2" in found["retrain-decision"].data
    assert f"size{NEW_SIZE}" in found["retrain-problems"].data
    assert found["retrain-progress"].data == 100.0


def test_a_worse_policy_is_refused_and_raises_the_alarm(night, machine):
    reference = machine.registry.champion()
    shutil.rmtree(machine.root / POLICY)
    shutil.copytree(machine.root.parent / "untrained", machine.root / POLICY)
    machine.run(sys.executable, "-m", "dvc", "commit", "--force", "--quiet")
    with machine.client() as client:
        nightly = client.read_deployment_by_name(NIGHTLY)
        client.create_flow_run_from_deployment(nightly.id)
    run = ended_run(machine, NIGHTLY, number=2)
    assert run.state.name == "Regressed", run.state.message
    assert machine.registry.champion() == reference
    assert len(machine.run("git", "tag", "--list").split()) == 1
    alarm = ended_run(machine, ALARM)
    assert alarm.state.is_failed()
    assert alarm.parameters["reason"] == run.state.message
    assert "worse in share correct" in run.state.message


def test_the_problems_that_were_there_are_still_there(machine):
    for size in TRAIN:
        assert (machine.root / f"data/problems/level1/size{size}.py").exists()
