"""The services of `make up` for real: where they listen, what they keep, and what they must not know.

The whole file is one story of one workspace, with a secret in everybody's environment.
"""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from ipaddress import ip_address
from pathlib import Path

import psutil
import pytest

from flows.soaks.provider import hostile_server
from tests.llm_builders import KEY, KEY_VARIABLE, requests_in
from tests.secret_search import files_with
from tests.service_builders import free_ports, is_gone, processes_of
from tests.stage_runs import workspace

NAMES = ("prefect", "mlflow", "schedule")
COMMAND_S = 200.0
SETTLED_S = 60.0

# In the place of the project's own schedule: nothing is due, and a run lasts until it is ended.
DEPLOYMENT = """
import time

from prefect import flow


@flow
def retrain(seconds: float = 600.0) -> None:
    time.sleep(seconds)


if __name__ == "__main__":
    retrain.serve(name="nightly", cron="0 3 1 1 *")
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


class Team:
    """A workspace, the addresses of its services, and everything that was said in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "work" / "services"
        self.ports = dict(zip(NAMES, free_ports(len(NAMES)), strict=True))
        self.api_url = f"http://127.0.0.1:{self.ports['prefect']}/api"
        self.said: list[str] = []

    def run(self, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        own = ("PREFECT", "MLFLOW")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        environment |= {f"CUDA_L1_{name.upper()}_PORT": str(port) for name, port in self.ports.items()}
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=self.root,
            env=environment | {KEY_VARIABLE: KEY} | changes,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
        )
        self.said.append(done.stdout + done.stderr)
        return done

    def api(self, path: str, **body: object) -> list[dict]:
        request = urllib.request.Request(
            f"{self.api_url}/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def processes(self) -> list[psutil.Process]:
        return [process for name in NAMES for process in processes_of(name, self.folder)]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    log = tmp_path_factory.mktemp("server") / "server.jsonl"
    log.touch()
    return log


@pytest.fixture(scope="module")
def team(tmp_path_factory, log):
    with hostile_server(log) as url:
        generator = {"base_url": url, "model": "tells key", "key_variable": KEY_VARIABLE, "answer_tokens": 300}
        generator |= {"prompt_usd_per_million": 0.0, "answer_usd_per_million": 0.0}
        root = workspace(
            tmp_path_factory.mktemp("team"),
            generate_variants__providers=["builtin", "teller"],
            generate_variants__generators={"teller": generator},
            generate_variants__trials=2,
        )
        (root / "flows" / "deployment.py").write_text(DEPLOYMENT)
        team = Team(root)
        try:
            assert team.run("flows.services", "up").returncode == 0, team.said
            yield team
        finally:
            team.run("flows.services", "down")


def until(found, timeout_s: float = SETTLED_S):
    """What a function finds, as soon as it finds anything."""
    end = time.monotonic() + timeout_s
    while not (result := found()):
        assert time.monotonic() < end
        time.sleep(0.2)
    return result


def listening(process: psutil.Process) -> set[tuple[str, int]]:
    try:
        connections = process.net_connections(kind="all")
    except psutil.NoSuchProcess:
        return set()
    return {
        (connection.laddr.ip, connection.laddr.port)
        for connection in connections
        if connection.laddr and (connection.status == psutil.CONN_LISTEN or connection.type.name == "SOCK_DGRAM")
    }


def test_the_pages_of_prefect_and_mlflow_are_served(team):
    for name, words in (("prefect", b"Prefect"), ("mlflow", b"MLflow")):
        with urllib.request.urlopen(f"http://127.0.0.1:{team.ports[name]}/", timeout=20) as answer:
            assert words in answer.read()
    with urllib.request.urlopen(f"http://127.0.0.1:{team.ports['prefect']}/ui-settings", timeout=20) as answer:
        assert json.load(answer)["api_url"] == team.api_url


def test_the_scheduler_makes_a_run_of_the_schedule(team):
    (run,) = until(lambda: team.api("flow_runs/filter", flow_runs={"state": {"type": {"any_": ["SCHEDULED"]}}}))[:1]
    assert run["state_name"] == "Scheduled"
    assert run["expected_start_time"][5:16] == "01-01T03:00"


def test_nothing_listens_beyond_this_machine(team):
    found = {name: set().union(*map(listening, processes_of(name, team.folder))) for name in NAMES}
    for name, port in team.ports.items():
        assert ("127.0.0.1", port) in found[name]
    assert [address for address, _ in set().union(*found.values()) if not ip_address(address).is_loopback] == []


def test_a_secret_of_the_environment_is_in_nothing_that_is_written(team, log):
    mlflow = f"http://127.0.0.1:{team.ports['mlflow']}"
    done = team.run("flows.generate_variants", PREFECT_API_URL=team.api_url, MLFLOW_TRACKING_URI=mlflow)
    assert done.returncode == 0, done.stderr
    assert {request["key"] for request in requests_in(log)} == {f"Bearer {KEY}"}
    assert team.run("flows.cli", "history", "export").returncode == 0
    assert team.run("flows.cli", "report", "--history", "data/history.duckdb", "--out", "report.html").returncode == 0
    until(lambda: {"Completed"} == {run["state_name"] for run in team.api("flow_runs/filter") if run["start_time"]})

    written = {path.name for path in team.root.rglob("*")}
    assert written >= {"history.duckdb", "verdicts.parquet", "report.html", "purchases.sqlite", "answers.jsonl"}
    assert written >= {"mlflow.db", "prefect.db", "prefect.log", "mlflow.log", "schedule.log", "prefect.json"}
    assert files_with(KEY, team.root) == []
    assert [text for text in team.said if KEY in text] == []
    assert [process for process in team.processes() if KEY in " ".join(process.cmdline())] == []


def test_down_ends_everything_and_up_finds_what_was_there(team):
    (deployment,) = team.api("deployments/filter")
    started = team.api(f"deployments/{deployment['id']}/create_flow_run")
    ids = {"flow_runs": {"id": {"any_": [started["id"]]}}}
    until(lambda: team.api("flow_runs/filter", **ids)[0]["state_name"] == "Running")
    known = {run["id"] for run in team.api("flow_runs/filter") if run["start_time"]}
    processes = team.processes()
    assert len(processes) > len(NAMES)  # the run's own process among them

    assert team.run("flows.services", "down").returncode == 0
    assert [process for process in processes if not is_gone(process)] == []
    assert team.run("flows.services", "status").returncode == 1
    # As after a restart of the machine: nothing runs, and yet there are records of services.
    for name in NAMES:
        stale = {"name": name, "pid": os.getpid(), "token": "0" * 32, "started_at": 0.0, "url": "http://127.0.0.1:1/"}
        (team.folder / f"{name}.json").write_text(json.dumps(stale))

    assert team.run("flows.services", "up").returncode == 0, team.said[-1]
    assert known <= {run["id"] for run in team.api("flow_runs/filter")}
    (ended,) = team.api("flow_runs/filter", **ids)
    assert ended["state_name"] == "Crashed"
    assert [found["paused"] for found in team.api("deployments/filter")] == [False]
    experiments = f"http://127.0.0.1:{team.ports['mlflow']}/api/2.0/mlflow/experiments/get-by-name"
    with urllib.request.urlopen(f"{experiments}?experiment_name=cuda-l1", timeout=20) as answer:
        assert json.load(answer)["experiment"]["name"] == "cuda-l1"


@pytest.mark.parametrize("name", ["plain.txt", "rows.parquet", "rows.duckdb", "packed.gz", "page.html"])
def test_the_search_for_secrets_finds_one(tmp_path, name):
    """In each form in which something is kept here."""
    import gzip
    from base64 import b64encode

    import duckdb

    path = tmp_path / name
    text = f"the key is {KEY}, " * 50
    match path.suffix:
        case ".txt":
            path.write_text(text)
        case ".gz":
            path.write_bytes(gzip.compress(text.encode()))
        case ".html":
            path.write_text(f"<script>{b64encode(gzip.compress(text.encode() * 9)).decode()}</script>")
        case ".parquet":
            duckdb.sql(f"COPY (SELECT '{text}' || i AS words FROM range(5000) AS r(i)) TO '{path}'")
        case ".duckdb":
            with duckdb.connect(path) as connection:
                connection.execute(f"CREATE TABLE notes AS SELECT '{text}' || i AS words FROM range(5000) AS r(i)")
    assert files_with(KEY, tmp_path) == [path]
    shutil.move(path, tmp_path.parent / f"{tmp_path.name}-{name}")
    assert files_with(KEY, tmp_path) == []
