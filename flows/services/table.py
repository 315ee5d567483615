"""Which services `make up` starts, and how they are configured: by environment variables.

CUDA_L1_PREFECT_PORT, CUDA_L1_MLFLOW_PORT and CUDA_L1_SCHEDULE_PORT say where they listen, always on this machine only;
CUDA_L1_SERVICES where their logs and records are. What Prefect and MLflow read themselves is respected: PREFECT_HOME,
PREFECT_API_DATABASE_CONNECTION_URL, PREFECT_SERVER_UI_API_URL, MLFLOW_TRACKING_URI and the rest of theirs.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from tasks.errors import ParamsError
from tasks.registry import PAGES_VARIABLE
from tasks.tracking import tracking_uri

HOST = "127.0.0.1"
FOLDER_VARIABLE, FOLDER = "CUDA_L1_SERVICES", "work/services"
SCHEDULE = "flows.deployment"


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """One program that runs until it is stopped, and answers over HTTP on one port."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    """The whole of it, secrets included: nothing of it may be on a command line, in a log or in a record."""
    port: int
    port_variable: str
    health_path: str
    page_path: str = "/"
    needs: tuple[str, ...] = ()
    """Services that must answer before this one is started."""

    @property
    def url(self) -> str:
        """The page for a person."""
        return f"http://{HOST}:{self.port}{self.page_path}"

    @property
    def health_url(self) -> str:
        return f"http://{HOST}:{self.port}{self.health_path}"


def services(environment: Mapping[str, str]) -> tuple[Service, ...]:
    """The services of the project in the current folder, in the order in which they are started.

    Raises:
        ParamsError: if a variable does not hold a port, or two services are to share one.
    """
    common = {"DO_NOT_TRACK": "1", "PREFECT_HOME": str(Path.cwd() / ".prefect")} | dict(environment)
    found = [_prefect(common)]
    if not is_remote(tracking_uri()):  # else numbers go to a server that somebody else runs
        found.append(_mlflow(common))
        common = {PAGES_VARIABLE: found[-1].url} | common
    if find_spec(SCHEDULE):
        found.append(_schedule(common, api_url=found[0].health_url.removesuffix("/health")))
    by_port: dict[int, Service] = {}
    for service in found:
        other = by_port.setdefault(service.port, service)
        if other is not service:
            raise ParamsError(
                f"{other.port_variable} and {service.port_variable} are both {service.port}; choose two ports"
            )
    return tuple(found)


def is_remote(uri: str) -> bool:
    """Whether a tracking URI is a server's address, and not a database that a server of ours can open."""
    return urlsplit(uri).scheme in ("http", "https")


def _prefect(common: Mapping[str, str]) -> Service:
    port = _port(common, "CUDA_L1_PREFECT_PORT", 4200)
    api_url = f"http://{HOST}:{port}/api"
    ours = {
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_API_URL": api_url,  # else the pages ask port 4200, whatever the port is
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    }
    return Service(
        name="prefect",
        command=(sys.executable, "-m", "prefect", "server", "start", "--host", HOST, "--port", str(port)),
        environment=ours | dict(common) | {"PREFECT_API_URL": api_url},
        port=port,
        port_variable="CUDA_L1_PREFECT_PORT",
        health_path="/api/health",
    )


def _mlflow(common: Mapping[str, str]) -> Service:
    port = _port(common, "CUDA_L1_MLFLOW_PORT", 5000)
    ours = {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # of its gateway and evaluations, in eight processes
        # Where stages put files that write to the database themselves: an experiment has one place, whoever made it.
        "MLFLOW_DEFAULT_ARTIFACT_ROOT": str(Path.cwd() / "mlruns"),
        "MLFLOW_ARTIFACTS_DESTINATION": str(Path.cwd() / "mlruns"),
    }
    uri = {"MLFLOW_BACKEND_STORE_URI": tracking_uri()}  # may hold a password: not on the command line
    return Service(
        name="mlflow",
        command=(sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(port), "--workers", "1"),
        environment=ours | dict(common) | uri,
        port=port,
        port_variable="CUDA_L1_MLFLOW_PORT",
        health_path="/health",
    )


def _schedule(common: Mapping[str, str], *, api_url: str) -> Service:
    """The process that serves the scheduled flow. Prefect's runner tells on its port whether it still polls."""
    port = _port(common, "CUDA_L1_SCHEDULE_PORT", 4201)
    ours = {
        "PREFECT_API_URL": api_url,
        "PREFECT_RUNNER_SERVER_ENABLE": "true",
        "PREFECT_RUNNER_SERVER_HOST": HOST,
        "PREFECT_RUNNER_SERVER_PORT": str(port),
    }
    return Service(
        name="schedule",
        command=(sys.executable, "-m", SCHEDULE),
        environment=dict(common) | ours,
        port=port,
        port_variable="CUDA_L1_SCHEDULE_PORT",
        health_path="/health",
        page_path="/health",
        needs=("prefect",),
    )


def _port(environment: Mapping[str, str], variable: str, default: int) -> int:
    text = environment.get(variable) or str(default)
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise ParamsError(f"{variable}={text!r} is no port; give a number from 1 to 65535")
    return int(text)
