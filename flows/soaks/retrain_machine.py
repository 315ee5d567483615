"""A machine that retrains, for the soak: a small project, its Prefect server and its runner; all may be killed.

Everything is as in earnest but small: six problems, a policy that learns them in seconds, a SQLite store of MLflow,
git, and a folder as DVC's remote. Stages tell Prefect and MLflow nothing, and retries wait seconds, not minutes.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import psutil

from flows.services.server import is_alive
from flows.workspace import make_workspace
from tasks.errors import MachineError
from tasks.judge.walls.system import PR_SET_CHILD_SUBREAPER, prctl

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

Found = TypeVar("Found")
START_S, POLL_S = 120.0, 0.2
SIZES, HELD_OUT = (8, 12, 16, 20, 24, 28), (16, 20, 24, 28)
NIGHTLY = "retrain/nightly"
CLOSED = "http://127.0.0.1:9"
SMALL: dict[str, object] = {
    "problems.limit": None,
    "problems.held_out_families": [f"size{size}" for size in HELD_OUT],
    "judge.trials": 2,
    "judge.rounds": 5,
    "judge.settled_error": 0.12,
    # The kernels taught are about three times as fast, where the usual limit lies and a second look fails on a busy
    # machine; of a few candidates none would be left to teach.
    "judge.jump_speedup": 100.0,
    "policy.threads": 1,
    "policy.context_tokens": 512,
    "policy.vocab_size": 420,
    "policy.completion_tokens": 128,
    "generate_variants.max_per_problem": 2,
    "generate_variants.compiled_share": 0.0,
    "generate_variants.faulty_share": 0.0,
    "filter_variants.min_speedup": 0.0,
    "sft.exemplar_share": 0.0,
    "sft.renamed_share": 0.0,
    "self_supervised.iterations": 1,
    "self_supervised.samples_per_problem": 1,
    "self_supervised.steps": 1,
    "contrastive_rl.steps": 1,
    "contrastive_rl.prompts_per_step": 1,
    "retrain.tier": "screen",
    "retrain.samples_per_problem": 2,
    "retrain.temperature": 0.2,
    "retrain.alpha": 0.2,
}
"""Changes to params.yaml with which a night takes a minute or two."""
COMPRESSED = (
    ("dvc.yaml", "python -m flows.", f"env -u PREFECT_API_URL MLFLOW_TRACKING_URI={CLOSED} python -m flows."),
    ("flows/retrain.py", "retry_delay_seconds=[10, 60, 300]", "retry_delay_seconds=[1, 2, 4]"),
    ("flows/retraining/crash.py", "LOST_S = 3 * HEARTBEAT_S", "LOST_S = 40"),
)
"""What a night waits for is made shorter: file, text, and what stands there instead."""
PROBLEM = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(rows))

    def forward(self, x):
        return torch.diag(self.scale) @ x


def get_inputs():
    return [torch.randn(1024, {size})]


def get_init_inputs():
    return [1024]
"""
"""What is learnt for it, to multiply row by row, is three to six times as fast: no noise decides who wins."""


class Machine:
    """The project and what runs for it. Orphans below us become our children, so none is overlooked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "project"
        self.remote = folder / "remote"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}/api"
        own = {
            "PREFECT_API_URL": self.url,
            "PREFECT_HOME": str(folder / "prefect"),
            "PREFECT_RUNNER_POLL_FREQUENCY": "2",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_TRACKING_URI": f"sqlite:///{self.root}/mlflow.db",
        }
        self.environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | own
        os.environ.update(own)  # for the client and the registry of this process
        self._server: psutil.Popen | None = None
        self.runner: psutil.Popen | None = None

    def client(self) -> "SyncPrefectClient":
        from prefect.client.orchestration import SyncPrefectClient

        return SyncPrefectClient(self.url)

    def start_server(self) -> None:
        command = ["prefect", "server", "start", "--host", "127.0.0.1", "--port", str(self._port)]
        self._server = self._started("server", *command)
        self.wait_for(lambda: is_alive(self.url), "the Prefect server", START_S)

    def kill_server(self) -> None:
        assert self._server is not None
        os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait()
        # Two of its kind may fight for the port, but only while somebody listens.
        self.wait_for(lambda: not is_alive(self.url), "the end of the server", START_S)

    def start_runner(self) -> None:
        self.runner = self._started("runner", "flows.deployment")
        self.wait_for(lambda: self._deployment_id() is not None, "the deployment", START_S)

    def deployment_id(self) -> UUID:
        found = self._deployment_id()
        assert found is not None
        return found

    def below_runner(self) -> list[psutil.Process]:
        """What does a run: all but the server and the runner itself. Orphans are among them, which became ours."""
        ours = psutil.Process().children(recursive=True)
        served = {self._server, *(self._server.children(recursive=True) if self._server else ())}
        return [process for process in ours if process not in served and process != self.runner and not _ended(process)]

    def stop(self) -> None:
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                process.kill()
        reap()

    def wait_for(self, found: Callable[[], Found | None], what: str, limit_s: float) -> Found:
        end = time.monotonic() + limit_s
        while not (result := found()):
            if time.monotonic() > end:
                raise MachineError(f"{what} did not come about in {limit_s:.0f} s; logs are in {self.folder}")
            self.reap()
            time.sleep(POLL_S)
        return result

    def reap(self) -> None:
        """What a machine's first process does all the time. DVC waits for whoever is not reaped."""
        reap(self._server, self.runner)

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False, timeout=300
        )
        if done.returncode:
            raise MachineError(f"{' '.join(command)} failed: {done.stderr}{done.stdout}")
        return done.stdout

    def _started(self, name: str, *module: str) -> psutil.Popen:
        with (self.folder / f"{name}.log").open("ab") as log:
            return psutil.Popen(
                [sys.executable, "-m", *module],
                cwd=self.root,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _deployment_id(self) -> UUID | None:
        from prefect.exceptions import ObjectNotFound

        with suppress(ObjectNotFound), self.client() as client:
            return client.read_deployment_by_name(NIGHTLY).id
        return None


@contextmanager
def machine(folder: Path) -> Iterator[Machine]:
    """A machine whose services run; ended with the block, with all that it started."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    made = Machine(folder)
    _make_project(made)
    os.chdir(made.root)  # where MLflow puts files is told from the working folder
    try:
        made.start_server()
        made.start_runner()
        yield made
    finally:
        made.stop()


def reap(*kept: psutil.Popen | None) -> None:
    """Let ended orphans that became our children go; those that are kept are asked by others."""
    waited = {process.pid for process in kept if process is not None}
    for process in psutil.Process().children():
        if process.pid not in waited and _ended(process):
            with suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def _ended(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return True


def _make_project(machine: Machine) -> None:
    own = {"sft.steps": 300, "filter_variants.min_speedup": 1.5, "retrain.decided_by": "all"}
    root = make_workspace(machine.root, profile="tiny", changes=SMALL | own)
    for name, text, shorter in COMPRESSED:
        file = root / name
        if text not in file.read_text():
            raise MachineError(f"{name} does not hold {text!r} any more: the soak cannot make it shorter")
        file.write_text(file.read_text().replace(text, shorter))
    shutil.rmtree(root / "data" / "problems")
    (root / "data" / "problems" / "level1").mkdir(parents=True)
    for size in SIZES:
        (root / "data" / "problems" / "level1" / f"size{size}.py").write_text(PROBLEM.format(size=size))
    (root / ".gitignore").write_text("/work/\n/mlruns/\n/mlflow.db*\n/data/history.duckdb*\n/data/problems/inbox/\n")
    with (root / ".dvc" / "config").open("a") as config:
        config.write(f"    remote = store\n['remote \"store\"']\n    url = {machine.remote}\n")
    for command in ("init --quiet", "add .", "-c user.name=a -c user.email=a@b commit --quiet --message first"):
        machine.run("git", *command.split())
