"""What a team leaves running on one machine: Prefect's server and UI, MLflow's UI, and the schedule.

    python -m flows.services up        start what does not run, wait until it answers, and show it
    python -m flows.services status    show it
    python -m flows.services down      end exactly what was started

`make up`, `make status` and `make down` are the same. Which services there are and which variables configure them:
flows/services/table.py.
"""

import argparse
import fcntl
import os
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

from flows.project import project_folder
from flows.services.processes import all_recorded, forget, leads, log_of, port_holder, recorded, start, stop
from flows.services.table import FOLDER, FOLDER_VARIABLE, HOST, Service, services
from tasks.errors import CudaL1Error, MachineError, ParamsError

HEALTHY_S = 180.0  # MLflow takes 15 s where nothing else runs
STOP_S = 30.0  # that a service has to end what it does
ANSWER_S, POLL_S = 5.0, 0.2
LOG_LINES = 15
CANNOT = 3

RUNNING, SILENT, DEAD, STOPPED = "running", "does not answer", "dead", "stopped"


def up(wanted: Sequence[Service], folder: Path, *, timeout_s: float = HEALTHY_S) -> None:
    """Start the services that do not run, and wait until all of them answer.

    Raises:
        MachineError: if a port is taken, or a service ends or does not answer in time. What answers keeps running.
    """
    with _alone(folder):
        missing = [service for service in wanted if not _runs_as_wanted(service, folder)]
        for service in missing:
            _clear(service, folder)
        _refuse_taken_ports(missing)
        for service in wanted:
            for needed in (other for other in wanted if other.name in service.needs):
                _await_health(needed, folder, timeout_s)
            if service in missing:
                start(service, folder)
        for service in wanted:
            _await_health(service, folder, timeout_s)


def down(folder: Path, *, patience_s: float = STOP_S) -> list[str]:
    """End whatever was started, the last first, also what nobody wants by now; the names of what was ended."""
    with _alone(folder):
        records = sorted(all_recorded(folder), key=lambda record: record.started_at, reverse=True)
        for record in records:
            stop(record, patience_s=patience_s)
            forget(record.name, folder)
    return [record.name for record in records]


def state(service: Service, folder: Path) -> str:
    """How a service is, in a word or three."""
    record = recorded(service.name, folder)
    if record is None:
        return STOPPED
    if not leads(record):
        return DEAD
    return RUNNING if _answers(urljoin(record.url, service.health_path)) else SILENT


def table(wanted: Sequence[Service], folder: Path) -> str:
    """One line for each service."""
    rows = [("service", "state", "pid", "address", "log")]
    for service in wanted:
        record, how = recorded(service.name, folder), state(service, folder)
        pid = str(record.pid) if record and how in (RUNNING, SILENT) else "-"
        rows.append((service.name, how, pid, record.url if record else service.url, str(log_of(service.name, folder))))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _runs_as_wanted(service: Service, folder: Path) -> bool:
    record = recorded(service.name, folder)
    if record is None or not leads(record):
        return False
    if record.url != service.url:
        raise MachineError(
            f"{service.name} runs at {record.url}, but {service.port_variable} now asks for port {service.port}; "
            f"`make down` ends it, then `make up` starts it there"
        )
    return True


def _clear(service: Service, folder: Path) -> None:
    """End what a service left that died: children of it may still hold its port or its database."""
    if record := recorded(service.name, folder):
        stop(record, patience_s=STOP_S)
        forget(service.name, folder)


def _refuse_taken_ports(missing: Sequence[Service]) -> None:
    for service in missing:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do
            try:
                probe.bind((HOST, service.port))
            except OSError as error:
                who = port_holder(service.port) or f"nobody we can see ({error.strerror})"
                raise MachineError(
                    f"port {service.port} for {service.name} is held by {who}; end that, or choose another port with "
                    f"{service.port_variable}. Nothing was started"
                ) from None


def _await_health(service: Service, folder: Path, timeout_s: float) -> None:
    record = recorded(service.name, folder)
    assert record is not None, service.name
    end = time.monotonic() + timeout_s
    while not _answers(service.health_url):
        if not leads(record):
            raise MachineError(f"{service.name} ended at its start. {_last_words(service, folder)}")
        if time.monotonic() > end:
            raise MachineError(
                f"{service.name} runs, but did not answer at {service.health_url} within {timeout_s:g} s. "
                f"{_last_words(service, folder)}"
            )
        time.sleep(POLL_S)


def _last_words(service: Service, folder: Path) -> str:
    log = log_of(service.name, folder)
    lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
    return "\n  ".join([f"The end of {log}:", *lines])


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=ANSWER_S) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder's lock: two that start the same services would each stop the other's."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MachineError(f"another `make up` or `make down` is at work in {folder}; wait for it") from None
        yield


def _up(folder: Path) -> int:
    wanted = services(os.environ)
    try:
        up(wanted, folder)
    finally:
        _say(table(wanted, folder))
    _say(f"\nTo see in Prefect what you start yourself: export PREFECT_API_URL=http://{HOST}:{wanted[0].port}/api")
    return 0


def _down(folder: Path) -> int:
    ended = down(folder)
    _say(f"ended: {', '.join(ended)}" if ended else "nothing was running")
    return 0


def _status(folder: Path) -> int:
    wanted = services(os.environ)
    _say(table(wanted, folder))
    return 0 if all(state(service, folder) == RUNNING for service in wanted) else 1


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 done, 1 a service does not run (status) or a variable is refused, 3 the machine cannot.
    """
    parser = argparse.ArgumentParser(
        prog="python -m flows.services", description="Prefect, MLflow and the schedule on this machine."
    )
    commands = {"up": _up, "down": _down, "status": _status}
    parser.add_argument("command", choices=commands)
    parsed = parser.parse_args(arguments)
    try:
        if (project := project_folder()) is None:
            raise MachineError(f"{Path.cwd()} is not inside a project; cd into one")
        os.chdir(project)
        return commands[parsed.command](Path(os.environ.get(FOLDER_VARIABLE) or FOLDER))
    except (CudaL1Error, OSError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1 if isinstance(error, ParamsError) else CANNOT
