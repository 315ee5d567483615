"""The step to several machines: Prefect on Postgres, and a pool of work that two workers share."""

import asyncio
import json
import os
import pwd
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from flows.services.command import down, up
from flows.services.table import services
from tests.secret_search import files_with
from tests.service_builders import free_ports, processes_of

POSTGRES = shutil.which("postgres")
POOL = "gpu-h100"
PROBE = """
import os
import time
from pathlib import Path

from prefect import flow


@flow(timeout_seconds=60)
def probe() -> None:
    Path(f"run-{os.getpid()}").touch()
    while len(list(Path().glob("run-*"))) < 2:
        time.sleep(0.1)
"""
"""A run that only ends when another one runs beside it."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(POSTGRES is None, reason="Postgres is not installed")]


def as_somebody(folder: Path) -> list[str]:
    """What to run Postgres with: it refuses to be root."""
    if os.getuid():
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("Postgres does not run as root, and there is no setpriv to become somebody else")
    user = "nobody"
    with suppress(KeyError):
        user = pwd.getpwnam("postgres").pw_name
    for path in (folder, *folder.iterdir()):
        shutil.chown(path, user)
    return ["setpriv", f"--reuid={user}", "--clear-groups"]


@pytest.fixture(scope="module")
def password():
    return secrets.token_hex(8)


@pytest.fixture(scope="module")
def database(password):
    """The address of an empty database of a Postgres server of our own."""
    binaries, (port,) = Path(POSTGRES).resolve().parent, free_ports(1)
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="postgres-"))  # one of pytest's only its user may enter
    (folder / "password").write_text(password)
    user = as_somebody(folder)
    data = f"--pgdata={folder / 'data'}"
    secret = f"--pwfile={folder / 'password'}"
    make = [binaries / "initdb", data, "--username=prefect", secret, "--auth=scram-sha-256", "--no-sync"]
    listen = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder} -c fsync=off"
    log = f"--log={folder / 'log'}"
    try:
        subprocess.run([*user, *make], check=True, capture_output=True, timeout=120)
        start = [binaries / "pg_ctl", data, log, "--wait", "-o", listen, "start"]
        subprocess.run([*user, *start], check=True, stdout=subprocess.DEVNULL, timeout=120)
        yield f"prefect:{password}@127.0.0.1:{port}/postgres"
    finally:
        stop = [binaries / "pg_ctl", data, "--wait", "--mode=immediate", "stop"]
        subprocess.run([*user, *stop], capture_output=True, timeout=60)
        shutil.rmtree(folder)


class Cluster:
    """A Prefect server on Postgres, and the folder it and its workers are started in."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.api_url = f"http://127.0.0.1:{port}/api"
        own = {"PREFECT_API_URL": self.api_url, "PREFECT_HOME": str(folder / "worker"), "DO_NOT_TRACK": "1"}
        self.environment = {**os.environ, **own}

    def prefect(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "prefect", "--no-prompt", *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, check=True, capture_output=True, text=True, timeout=120
        ).stdout

    def worker(self, name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL, "--name", name, "--limit", "1"]
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=log, stderr=log)

    def runs(self) -> list[dict]:
        """Those that somebody asked for, not those of the schedule."""
        body = json.dumps({"sort": "EXPECTED_START_TIME_ASC"}).encode()
        request = urllib.request.Request(f"{self.api_url}/flow_runs/filter", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return [run for run in json.load(answer) if not run["auto_scheduled"]]


@pytest.fixture
def cluster(tmp_path, monkeypatch, database):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    (port,) = free_ports(1)
    variables = {"CUDA_L1_PREFECT_PORT": str(port)}
    variables["PREFECT_API_DATABASE_CONNECTION_URL"] = f"postgresql+asyncpg://{database}"
    server = [service for service in services(os.environ | variables) if service.name == "prefect"]
    (tmp_path / "probe.py").write_text(PROBE)
    try:
        up(server, tmp_path)
        yield Cluster(tmp_path, port)
    finally:
        down(tmp_path)


def rows(database: str) -> list[tuple[str, str]]:
    """The names and states of all runs, as the database has them."""
    import asyncpg

    async def read() -> list[tuple[str, str]]:
        connection = await asyncpg.connect(f"postgresql://{database}")
        try:
            return [tuple(row) for row in await connection.fetch("SELECT name, state_name FROM flow_run")]
        finally:
            await connection.close()

    return asyncio.run(read())


def test_two_workers_share_a_pool_and_postgres_keeps_the_runs(cluster, database, password):
    cluster.prefect("work-pool", "create", POOL, "--type", "process")
    cluster.prefect("deploy", "probe.py:probe", "--name", POOL, "--pool", POOL, "--cron", "0 3 1 1 *")
    for _ in range(2):
        cluster.prefect("deployment", "run", f"probe/{POOL}")
    workers = [cluster.worker(name) for name in ("one", "two")]
    try:
        end = time.monotonic() + 120
        while [run["state_name"] for run in cluster.runs()] != ["Completed", "Completed"]:
            assert time.monotonic() < end, cluster.runs()
            time.sleep(0.5)
    finally:
        for worker in workers:
            worker.kill()  # asked politely, one may wait long for what it no longer gets
            worker.wait()

    logs = [(cluster.folder / f"{name}.log").read_text() for name in ("one", "two")]
    begun = [re.findall(r"Beginning flow run '(\S+)'", log) for log in logs]
    assert [len(names) for names in begun] == [1, 1], logs
    assert {*begun[0], *begun[1]} == {run["name"] for run in cluster.runs()}
    kept = rows(database)
    assert {(run["name"], "Completed") for run in cluster.runs()} <= set(kept)
    assert "Scheduled" in {state for _, state in kept}  # its scheduler works on this database too
    assert files_with(password, cluster.folder) == []
    assert [process for process in processes_of("prefect", cluster.folder) if password in str(process.cmdline())] == []
