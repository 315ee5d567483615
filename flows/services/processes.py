"""The processes of services: started in sessions of their own, found again, and ended with all that they started.

A process belongs to a service if its environment holds the token that was drawn when the service was started, or if it
was started by such a process. A pid alone says nothing: it may be another's by now, and what a service starts may leave
its process group.
"""

import json
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from flows.services.table import HOST, Service
from tasks.errors import MachineError

TOKEN_VARIABLE = "CUDA_L1_SERVICE_TOKEN"
POLL_S = 0.1
KILLED_S = 10.0
READABLE_S = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What is remembered of a service that was started: enough to find it again, and no secret of it."""

    name: str
    pid: int
    token: str
    started_at: float
    """Unix time in seconds."""
    url: str


def start(service: Service, folder: Path) -> Record:
    """Start a service and write down which one; it outlives us and our terminal."""
    token = secrets.token_hex(16)
    with log_of(service.name, folder).open("ab") as log:
        process = subprocess.Popen(
            service.command,
            env={**service.environment, TOKEN_VARIABLE: token},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    record = Record(name=service.name, pid=process.pid, token=token, started_at=time.time(), url=service.url)
    path = _path(service.name, folder)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(record)) + "\n")
    partial.replace(path)
    # For a moment the new program has no environment that anyone could read, and seems to be nobody's.
    end = time.monotonic() + READABLE_S
    while process.poll() is None and not leads(record) and time.monotonic() < end:
        time.sleep(POLL_S)
    return record


def recorded(name: str, folder: Path) -> Record | None:
    """The service as it was last started, whether it still runs or not; None if it was stopped or never started."""
    try:
        return Record(**json.loads(_path(name, folder).read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise MachineError(
            f"{_path(name, folder)} cannot be read; end the {name} service by hand if it runs, and delete that file"
        ) from None


def all_recorded(folder: Path) -> list[Record]:
    """Every service that was started and not stopped since."""
    return [record for path in folder.glob("*.json") if (record := recorded(path.stem, folder))]


def forget(name: str, folder: Path) -> None:
    _path(name, folder).unlink(missing_ok=True)


def log_of(name: str, folder: Path) -> Path:
    return folder / f"{name}.log"


def leads(record: Record) -> bool:
    """Whether the process that was started still runs: not only children of it, and not another with its pid."""
    return record.pid in {process.pid for process in _holders(record.token)}


def members(record: Record) -> list[psutil.Process]:
    """Every live process of a service."""
    found = {process.pid: process for process in _holders(record.token)}
    for process in list(found.values()):
        with suppress(psutil.Error):
            found |= {child.pid: child for child in process.children(recursive=True) if _is_alive(child)}
    return list(found.values())


def stop(record: Record, *, patience_s: float) -> None:
    """End a service and everything it started: politely first, by force after a while.

    Raises:
        MachineError: if a process does not even end by force.
    """
    # All at once, since a Prefect runner waits for the runs it started, and does not tell them to end. Not what they
    # started without our token: a candidate's process must not end before its referee, who would blame the candidate.
    for process in _holders(record.token):
        with suppress(psutil.Error):
            process.terminate()
    end = time.monotonic() + patience_s
    while alive := members(record):
        if time.monotonic() > end + KILLED_S:
            pids = ", ".join(str(process.pid) for process in alive)
            raise MachineError(f"{record.name} does not end, not even by force; its processes are {pids}")
        if time.monotonic() > end:
            for process in alive:
                with suppress(psutil.Error):
                    process.kill()
        time.sleep(POLL_S)


def port_holder(port: int) -> str | None:
    """Who listens where a service is to listen, as far as this user may know; None if nobody does."""
    holders = [
        listener
        for listener in psutil.net_connections(kind="tcp")
        if listener.status == psutil.CONN_LISTEN and listener.laddr.port == port and _overlaps(listener.laddr.ip)
    ]
    if not holders:
        return None
    with suppress(psutil.Error):
        if holders[0].pid:
            # Its program only: further words of a stranger's command line may be secret.
            return f"process {holders[0].pid} ({psutil.Process(holders[0].pid).name()})"
    return "a process of another user"


def _overlaps(address: str) -> bool:
    return address in (HOST, "0.0.0.0", "::", f"::ffff:{HOST}")


def _holders(token: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # ended meanwhile, or another user's, and then not ours
            if process.environ().get(TOKEN_VARIABLE) == token and _is_alive(process):
                yield process


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _path(name: str, folder: Path) -> Path:
    return folder / f"{name}.json"
