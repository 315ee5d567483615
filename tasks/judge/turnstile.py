"""Whose turn it is on a device, among all processes of a machine that judge on it.

File locks, because the kernel takes back those of a process that ends, however it ends.
"""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tasks.errors import MachineError, WorkerError

FOLDER = Path("/tmp")  # whatever TMPDIR says, or judges that differ in it would not meet; workers find it empty
POLL_S = 0.0003
WAIT_S = 1800.0
"""A turn may take as long as a candidate may, and others may come before."""


class Turnstile:
    """Lets one through at a time, and knows whether somebody is at large meanwhile. Thread safe.

    Methods raise WorkerError when somebody keeps the locks for too long.
    """

    def __init__(self, name: str) -> None:
        """Join those who share the name.

        Raises:
            MachineError: if its lock files can neither be read nor made.
        """
        self._turn_file, self._large_file = (FOLDER / f"cuda-l1-{name}.{kind}" for kind in ("turn", "large"))
        self._turn, self._large = threading.Lock(), threading.Lock()  # a file lock belongs to the process
        self._turn_fd = _opened(self._turn_file)
        self._large_fd = _opened(self._large_file)
        self._num_at_large = 0

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for nobody else to be in here, and be alone in here."""
        with self._turn:
            _lock(self._turn_fd, fcntl.LOCK_EX, self._turn_file)
            try:
                yield
            finally:
                fcntl.flock(self._turn_fd, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def at_large(self) -> Iterator[None]:
        """Be at work beside whoever has the turn."""
        with self._large:
            if not self._num_at_large:
                _lock(self._large_fd, fcntl.LOCK_SH, self._large_file)
            self._num_at_large += 1
        try:
            yield
        finally:
            with self._large:
                self._num_at_large -= 1
                if not self._num_at_large:
                    fcntl.flock(self._large_fd, fcntl.LOCK_UN)

    def is_anybody_at_large(self) -> bool:
        with self._large:
            if self._num_at_large:
                return True
            try:
                fcntl.flock(self._large_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            fcntl.flock(self._large_fd, fcntl.LOCK_UN)
            return False

    def close(self) -> None:
        os.close(self._turn_fd)
        os.close(self._large_fd)


def _lock(fd: int, kind: int, path: Path) -> None:
    """A blocking call would be woken at once, but knows no limit."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise WorkerError(f"another process has kept {path} locked for {WAIT_S:.0f} s: no turn") from None
            time.sleep(POLL_S)


def _opened(path: Path) -> int:
    """A file to lock, whoever made it: in a shared folder the kernel lets nobody but its owner open it to create it."""
    try:
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, os.O_RDONLY)
        fd = os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)
        with contextlib.suppress(PermissionError):
            os.fchmod(fd, 0o666)  # what the creation mask took away
    except OSError as error:
        raise MachineError(f"{path}, by which judges take turns on a device, cannot be opened: {error}") from error
    return fd
