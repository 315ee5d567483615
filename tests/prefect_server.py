"""A Prefect server for tests: its own port, its own home, gone at the end."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flows.services.server import is_alive

START_S = 60.0


@contextmanager
def prefect_server(home: Path, *, port: int | None = None, **settings: str) -> Iterator[str]:
    """The API address of a server that keeps everything in a folder of its own.

    Args:
        port: where it listens; any that is free if it is not told.
        settings: variables of its environment.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = port or free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/api"
    environment = os.environ | {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_UI_API_URL": url,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        **settings,
    }
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + START_S
        while not is_alive(url):
            assert process.poll() is None, "the server ended at its start"
            assert time.monotonic() < deadline, f"no server at {url} after {START_S} s"
            time.sleep(0.2)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
