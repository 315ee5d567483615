"""Taking turns at a history file, among processes.

DuckDB's lock goes to whoever happens to ask the moment it is free: readers that come and go keep writers out, and of
several writers one gets it again and again. So whoever wants it takes a turn first: a reader until DuckDB has opened
the file for it, a writer until it has closed it. A turn is a lock on the folder, which the kernel takes back from
whoever is killed.
"""

import fcntl
import math
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TURN_S = 0.6
"""Whoever has not opened the file by then lets others try: they may read beside a reader that keeps a writer out."""
_REST_S = 0.03
_PAUSES_S = (0.004, 0.02)
_READERS_HALVED_EVERY_S, _WRITERS_HALVED_EVERY_S = 0.01, 0.5


@contextmanager
def turn(path: Path, *, is_reader: bool, begun: float, deadline: float) -> Iterator[float]:
    """A turn at a file, once others have had theirs, and the time until which it lasts.

    Where the file system has no locks on folders, or none comes before the deadline, everybody has a turn.

    Args:
        is_reader: readers go first: they read side by side, for a moment each, and somebody watches.
        begun: when the wait began, by the monotonic clock; the longer ago, the more often this asks.
        deadline: when it is over.
    """
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError:
        yield deadline  # opening the file will tell what is wrong
        return
    try:
        halved_every_s = _READERS_HALVED_EVERY_S if is_reader else _WRITERS_HALVED_EVERY_S
        _wait(folder, halved_every_s=halved_every_s, begun=begun, deadline=deadline)
        yield min(time.monotonic() + TURN_S, deadline)
    finally:
        os.close(folder)


def rest() -> None:
    """Let others have a turn after one that came to nothing."""
    time.sleep(random.uniform(_REST_S, 2 * _REST_S))


def _wait(folder: int, *, halved_every_s: float, begun: float, deadline: float) -> None:
    while (now := time.monotonic()) < deadline:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # A blocking call would be woken in order but knows no limit; asking more often the longer it takes comes
            # to nearly the same.
            shortest_s, longest_s = _PAUSES_S
            pause_s = max(shortest_s, longest_s * math.pow(0.5, (now - begun) / halved_every_s))
            time.sleep(random.uniform(0.5, 1.0) * pause_s)
        except OSError:
            return
        else:
            return
