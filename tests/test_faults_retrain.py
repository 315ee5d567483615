"""Faults of a night and what is promised for each; many of them at random moments: python -m flows.soaks.retrain."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from flows.retraining.start import holder, only_one
from flows.workspace import make_workspace
from tests.prefect_server import prefect_server
from tests.service_builders import free_ports
from tests.stage_runs import CLOSED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

LIMIT_S = 150.0
# In the place of the retraining: it lasts until it is told to end, and says who does it.
RETRAIN = """
import os, time
from pathlib import Path
from prefect import flow
from flows.retraining.start import only_one

def flow_parameters(params):
    return {}

@flow(name="retrain", persist_result=False)
def retrain():
    with only_one():
        Path("doing").write_text(str(os.getpid()))
        while not Path("enough").exists():
            time.sleep(0.1)
"""


def until(found: Callable[[], Any], limit_s: float = LIMIT_S) -> Any:
    end = time.monotonic() + limit_s
    while not (result := found()):
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.1)
    return result


def test_a_killed_flow_leaves_no_dvc_and_no_stage_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc" / "config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
    (tmp_path / "stage.py").write_text(
        "import os, pathlib, time\nfrom flows.ancestors import end_with_ancestors\nend_with_ancestors()\n"
        "pathlib.Path('pid').write_text(str(os.getpid()))\ntime.sleep(100)\n"
    )
    (tmp_path / "dvc.yaml").write_text(json.dumps({"stages": {"sft": {"cmd": f"{sys.executable} stage.py"}}}))
    program = (
        "from prefect.logging import disable_run_logger\nfrom flows.pipeline import reproduce\n"
        "with disable_run_logger():\n    reproduce.fn('sft')\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    flow = subprocess.Popen([sys.executable, "-c", program], env=environment)
    pid = tmp_path / "pid"
    until(lambda: pid.exists() and pid.read_text())
    below = psutil.Process(flow.pid).children(recursive=True)
    assert int(pid.read_text()) in {process.pid for process in below}
    flow.kill()
    flow.wait()
    until(lambda: not any(map(is_alive, below)))


def is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def test_a_server_that_is_down_keeps_no_result_from_being_reached():
    from prefect.logging import disable_run_logger
    from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

    from flows.retraining.page import Progress, show_arrivals

    with (
        temporary_settings({PREFECT_API_URL: f"{CLOSED}/api", PREFECT_CLIENT_MAX_RETRIES: 0}),
        disable_run_logger(),
    ):
        show_arrivals([])
        Progress().show(0.5, "half")


def test_who_retrains_is_known_until_it_ends(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert holder() == ""
    with only_one():
        assert f"process {os.getpid()}" in holder()
    assert holder() == ""


class Served:
    """A project whose retraining does nothing until it is told to end, and the process that serves it."""

    def __init__(self, folder: Path) -> None:
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}/api"
        self.home = folder / "prefect"
        self.log = folder / "served.log"
        self.root = make_workspace(folder / "project", profile="tiny")
        (self.root / "flows/retrain.py").write_text(RETRAIN)
        crash = self.root / "flows/retraining/crash.py"
        crash.write_text(crash.read_text().replace("LOST_S = 3 * HEARTBEAT_S", "LOST_S = 10"))
        self.environment = os.environ | {
            "PREFECT_API_URL": self.url,
            "PREFECT_HOME": str(self.home),
            "PREFECT_RUNNER_POLL_FREQUENCY": "1",
            "PREFECT_CLIENT_MAX_RETRIES": "2",  # its own five take three minutes to give up
        }
        self.environment.pop("PYTHONPATH", None)
        self.server = ExitStack()

    def start_server(self) -> None:
        self.server.enter_context(prefect_server(self.home, port=self.port))

    def serve(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "flows.deployment"],
                cwd=self.root,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def end(self) -> None:
        for process in [*psutil.Process(self.process.pid).children(recursive=True), self.process]:
            process.kill()
        self.process.wait()
        self.server.close()

    def begin(self) -> tuple[Any, int]:
        """A run and its process, once that has begun."""
        (self.root / "enough").unlink(missing_ok=True)
        with self.client() as client:
            run = client.create_flow_run_from_deployment(client.read_deployment_by_name("retrain/nightly").id)
        return run.id, self.begun()

    def begun(self) -> int:
        """The next process that begins to retrain."""
        doing = self.root / "doing"
        pid = until(lambda: doing.exists() and doing.read_text())
        doing.unlink()
        return int(pid)

    def client(self) -> Any:
        from prefect.client.orchestration import SyncPrefectClient

        return SyncPrefectClient(self.url)

    def states(self, run_id: Any) -> list[Any]:
        with self.client() as client:
            return client.read_flow_run_states(run_id)

    def completes(self, run_id: Any) -> None:
        """A run that is told to end."""
        (self.root / "enough").touch()
        until(lambda: self.states(run_id)[-1].is_completed())


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("served"))
    made.start_server()
    made.serve()
    until(lambda: "being served" in made.log.read_text().replace("\n", " "))
    yield made
    made.end()


def test_a_run_whose_process_was_killed_is_begun_again(served):
    run_id, pid = served.begin()
    os.kill(pid, signal.SIGKILL)
    served.begun()
    served.completes(run_id)
    (crashed,) = [state for state in served.states(run_id) if state.is_crashed()]
    assert "-9" in crashed.message
    (again,) = [state for state in served.states(run_id) if state.name == "AwaitingRetry"]
    assert crashed.message in again.message


def test_a_run_that_vanished_with_who_served_it_is_begun_again_by_who_serves_next(served):
    run_id, pid = served.begin()
    served.process.kill()
    os.kill(pid, signal.SIGKILL)
    served.process.wait()
    until(lambda: served.states(run_id)[-1].is_crashed())
    assert "nothing was heard of its process" in served.states(run_id)[-1].message
    served.serve()
    served.begun()
    served.completes(run_id)


def test_a_run_outlives_who_serves_it_and_is_not_begun_twice(served):
    """Also if the server takes it for dead meanwhile, as after an outage of its own."""
    run_id, pid = served.begin()
    served.process.kill()
    served.process.wait()
    until(lambda: served.states(run_id)[-1].is_crashed())
    served.serve()
    until(lambda: "its process lives" in (served.states(run_id)[-1].message or ""))
    assert psutil.pid_exists(pid)
    served.completes(run_id)


def test_a_run_that_was_claimed_and_not_begun_is_begun_by_who_serves_next(served):
    """As when who serves it is killed in the second between its claim and the start of the process."""
    from prefect.states import Pending

    served.process.kill()
    served.process.wait()
    (served.root / "enough").unlink(missing_ok=True)
    with served.client() as client:
        run = client.create_flow_run_from_deployment(client.read_deployment_by_name("retrain/nightly").id)
        for name in ("Pending", "Submitting"):
            client.set_flow_run_state(run.id, Pending(name=name), force=True)
    until(lambda: served.states(run.id)[-1].is_crashed())
    assert "nothing was heard of its process" in served.states(run.id)[-1].message
    served.serve()
    served.begun()
    served.completes(run.id)


def test_what_crashes_every_time_is_given_up(served):
    from prefect.settings import PREFECT_API_URL, temporary_settings
    from prefect.states import Crashed

    from flows.retraining.crash import MAX_CRASHES, pick_up

    with served.client() as client, temporary_settings({PREFECT_API_URL: served.url}):
        nobody_serves = client.create_deployment(flow_id=client.create_flow_from_name("lonely"), name="lonely")
        run = client.create_flow_run_from_deployment(nobody_serves, state=Crashed(message="no memory"))
        for _ in range(MAX_CRASHES - 1):
            assert pick_up.fn(run.id).is_completed()
            assert client.read_flow_run(run.id).state.name == "AwaitingRetry"
            client.set_flow_run_state(run.id, Crashed(message="no memory"), force=True)
        given_up = pick_up.fn(run.id)
        assert given_up.is_failed()
        assert f"crashed {MAX_CRASHES} times, the last time so: no memory" in given_up.message


def test_who_serves_outlives_a_server_that_is_away_for_long(served):
    served.server.close()
    until(lambda: "waiting for it" in served.log.read_text())
    served.start_server()
    run_id, _ = served.begin()
    served.completes(run_id)
