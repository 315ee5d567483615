"""Services for tests, the project's own and made-up ones, on ports that are free."""

import os
import socket
import sys
from pathlib import Path

import psutil

from flows.services.processes import members, recorded
from flows.services.table import Service

FAKE = Path(__file__).with_name("fake_service.py")


def free_ports(count: int) -> list[int]:
    """Different ports on which nobody listens."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def fake(name: str, *ways: str, port: int | None = None, needs: tuple[str, ...] = ()) -> Service:
    """A service that behaves as tests/fake_service.py does in these ways."""
    port = port or free_ports(1)[0]
    return Service(
        name=name,
        command=(sys.executable, str(FAKE), str(port), *ways),
        environment=os.environ,
        port=port,
        port_variable=f"{name.upper()}_PORT",
        health_path="/health",
        needs=needs,
    )


def processes_of(name: str, folder: Path) -> list[psutil.Process]:
    record = recorded(name, folder)
    return members(record) if record else []


def is_gone(process: psutil.Process) -> bool:
    """Whether a process has ended, be it that nobody has asked yet how. One that was killed takes a moment to end."""
    psutil.wait_procs([process], timeout=5.0)
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
