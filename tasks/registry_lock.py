"""One promotion at a time, where all who promote share a file: the registry's own database."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.registry_errors import registry_error

LIMIT_S = 60.0
"""A promotion takes as long as a few questions to a database."""
POLL_S = 0.05
_SQLITE = "sqlite:///"


@contextmanager
def one_promotion(uri: str) -> Iterator[None]:
    """Hold the lock beside a database that is a file. A server has none, and nobody waits there.

    Raises:
        RegistryError: if somebody else has held it for LIMIT_S.
    """
    if not uri.startswith(_SQLITE):
        yield
        return
    path = Path(f"{uri.removeprefix(_SQLITE)}.promotion")
    try:
        lock = path.open("a")
    except OSError as error:
        raise registry_error(uri, error) from error
    with lock:
        deadline = time.monotonic() + LIMIT_S
        while not _is_taken(lock.fileno()):
            if time.monotonic() > deadline:
                raise registry_error(uri, TimeoutError(f"another promotion has held {path} for {LIMIT_S:.0f} s"))
            time.sleep(POLL_S)
        yield


def _is_taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
