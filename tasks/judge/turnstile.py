"""Whose turn it is on a device, among all processes of a machine that judge on it.

File locks, because the kernel takes back those of a process that ends, however it ends.
"""

import contextlib
import fcntl
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from tasks.errors import MachineError


class Turnstile:
    """Lets one through at a time, and knows whether somebody is at large meanwhile. Thread safe."""

    def __init__(self, name: str) -> None:
        """Join those who share the name.

        Raises:
            MachineError: if its lock files can neither be read nor made.
        """
        folder = Path(tempfile.gettempdir())
        self._turn = threading.Lock()  # a file lock belongs to the process
        self._turn_fd = _opened(folder / f"cuda-l1-{name}.turn")
        self._large = threading.Lock()
        self._large_fd = _opened(folder / f"cuda-l1-{name}.large")
        self._num_at_large = 0

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for nobody else to be in here, and be alone in here."""
        with self._turn:
            fcntl.flock(self._turn_fd, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._turn_fd, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def at_large(self) -> Iterator[None]:
        """Be at work beside whoever has the turn."""
        with self._large:
            if not self._num_at_large:
                fcntl.flock(self._large_fd, fcntl.LOCK_SH)
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
