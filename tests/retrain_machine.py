"""A machine that retrains in tests: a small project under git, DVC's remote, a server, and runs that are waited for."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.prefect_server import prefect_server
from tests.retrain_builders import project
from tests.training_builders import policy

ROOT = Path(__file__).parents[1]
LIMIT_S = 900.0  # a minute or two on a machine that has nothing else to do


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

    def run(self, *command: str, folder: Path | None = None) -> str:
        """What a command says, which must succeed; in the project, or a clone of it."""
        done = subprocess.run(
            command,
            cwd=folder or self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@contextmanager
def retraining_machine(folder: Path) -> Iterator[Machine]:
    """A project under git with a DVC remote, a server, and an untrained policy as champion."""
    root = project(folder)
    for name in (".gitignore", ".dvc/.gitignore"):
        shutil.copy(ROOT / name, root / name)
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
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # dvc starts stages as `python`
        environment = {**os.environ, "PREFECT_API_URL": url, "PATH": path}
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
    from flows.retraining.champion_params import as_tag
    from tasks.params import load_params

    version = registry.register(folder, mlflow_run_id=run, tags=as_tag(load_params().policy))
    registry.promote(version, over=None)


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
