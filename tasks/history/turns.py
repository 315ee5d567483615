"""Taking turns at a history file, among processes.

DuckDB's lock goes to whoever happens to ask the moment it is free, so a process that is unlucky waits long. Here a
reader waits for one writer at most, and a writer for other writers and the readers that came before it. Three locks do
that, each on one byte of an empty file beside the history. They belong to a process, in which one thread at a time may
take turns, and the kernel takes them back from whoever is killed.

- **writing**: one writer after another has it, from its beginning to its end.
- the **queue**: shared by readers until they have the file. So a writer, which needs it alone, comes after all readers
  that have gathered; it keeps new ones away until those that are reading have finished, and leaves the queue to them
  when it has the file.
- the **file**: shared by those who read, and had alone by the one who writes.
"""

import fcntl
import math
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TURN_S = 0.6
"""A writer that has not opened the file by then lets readers pass: somebody reads for long, or takes no turns."""
_REST_S = 0.05
_WRITING, _QUEUE, _FILE = range(3)
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.004, 0.02
_HALVED_EVERY_S = 0.5


@contextmanager
def turns(path: Path, *, is_reader: bool, deadline: float) -> Iterator[Iterator[float]]:
    """Turns at a file, until one suffices: of each, the time until which to try and open the file.

    The last one goes on until the context ends. After the deadline, by the monotonic clock, everybody has a turn, and
    always where there can be no locks.
    """
    try:
        # A question leaves nothing behind: only writers make the file.
        locks = os.open(locks_of(path), os.O_RDONLY if is_reader else os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        yield _everybodys(deadline)
        return
    try:
        yield _readers(locks, deadline) if is_reader else _writers(locks, deadline)
    finally:
        os.close(locks)  # which ends every lock


def locks_of(path: Path) -> Path:
    """The file that is locked instead of the history."""
    return path.with_name(f"{path.name}.turns")


def _everybodys(deadline: float) -> Iterator[float]:
    while True:
        yield deadline


def _readers(locks: int, deadline: float) -> Iterator[float]:
    _wait(locks, _QUEUE, fcntl.LOCK_SH, deadline)
    _wait(locks, _FILE, fcntl.LOCK_SH, deadline)
    _unlock(locks, _QUEUE)
    yield from _everybodys(deadline)


def _writers(locks: int, deadline: float) -> Iterator[float]:
    _wait(locks, _WRITING, fcntl.LOCK_EX, deadline, longest_pause_s=_LONGEST_PAUSE_S)
    while True:
        _wait(locks, _QUEUE, fcntl.LOCK_EX, deadline)
        turn_ends = min(time.monotonic() + TURN_S, deadline)
        _wait(locks, _FILE, fcntl.LOCK_EX, turn_ends)
        _unlock(locks, _QUEUE)
        yield turn_ends
        _unlock(locks, _FILE)
        time.sleep(_REST_S)


def _wait(locks: int, which: int, kind: int, deadline: float, *, longest_pause_s: float = _SHORTEST_PAUSE_S) -> None:
    """Have a lock, or the deadline. A blocking call would be woken in order but knows no limit."""
    begun = time.monotonic()
    while not _lock(locks, which, kind) and (now := time.monotonic()) < deadline:
        # Asking more often the longer it takes comes to nearly the same as being woken in order.
        pause_s = max(_SHORTEST_PAUSE_S, longest_pause_s * math.pow(0.5, (now - begun) / _HALVED_EVERY_S))
        time.sleep(random.uniform(0.5, 1.0) * pause_s)


def _lock(locks: int, which: int, kind: int) -> bool:
    """Whether the lock is had, as it is where the file system has no locks."""
    try:
        fcntl.lockf(locks, kind | fcntl.LOCK_NB, 1, which)
    except (BlockingIOError, PermissionError):  # which of them, the kernel decides
        return False
    except OSError:
        return True
    return True


def _unlock(locks: int, which: int) -> None:
    with suppress(OSError):  # where the file system has no locks
        fcntl.lockf(locks, fcntl.LOCK_UN, 1, which)
