"""A worker and everything it started, together: the limits that no limit on single processes amounts to.

A control group holds them where there is one. Where there is none, or where the worker's folder lies on a disk of ours,
the referee looks now and then, while it waits and before it asks.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tasks.judge.walls.cgroup import ControlGroup
from tasks.judge.walls.scratch import RESERVE_BYTES, free_bytes
from tasks.judge.wire import WireError

LOOK_S = 0.25  # calls shorter than this are never disturbed by a look
MAX_ENTRIES = 65_536
WATCHED = "watch"


class Crowd:
    """The limits on one worker and what it started."""

    def __init__(
        self,
        group: ControlGroup | None,
        give_back: Callable[[ControlGroup], None],
        *,
        memory_bytes: int,
        processes: int,
        disk_bytes: int,
        scratch: Path,
    ) -> None:
        """Hold or watch a worker that is about to start.

        Args:
            group: where the worker is to go, if there are control groups.
            give_back: what to do with the group in the end.
        """
        self.entrances = group.entrances if group else []
        self.limits_processes = group is not None and group.limits_processes
        self._group = group
        self._give_back = give_back
        self._num_kills = group.num_kills if group else 0
        self._memory_bytes = memory_bytes
        self._processes = processes
        self._disk_bytes = disk_bytes
        self._scratch = scratch
        self._watches_memory = self._watches_disk = False
        self._next_look = 0.0

    def begin(self, walls: list[str]) -> None:
        """Learn which walls stand, and watch what they leave open; that is then said among the walls."""
        self._watches_memory = "cgroup" not in walls
        self._watches_disk = "mount" not in walls
        if self.is_watched:
            walls.append(WATCHED)

    @property
    def is_watched(self) -> bool:
        return self._watches_memory or self._watches_disk

    def look(self, pids: Callable[[], Iterable[int]]) -> None:
        """See whether a limit is exceeded, unless that was done a moment ago.

        Args:
            pids: the processes that count.

        Raises:
            WireError: saying which limit it is.
        """
        if not self.is_watched or time.monotonic() < self._next_look:
            return
        if self._watches_memory:
            self._look_at_processes(list(pids()))
        if self._watches_disk:
            self._look_at_disk()
        self._next_look = time.monotonic() + LOOK_S

    def explained(self, error: WireError) -> WireError:
        """The error, or why it came to it: a process that the kernel ended for want of memory."""
        if self._group is not None and self._group.num_kills > self._num_kills:
            return WireError(self._too_much("memory", self._memory_bytes))
        return error

    def close(self) -> None:
        """Let others have the group; to be called when nothing of the worker is left."""
        if self._group is not None:
            self._give_back(self._group)

    def _look_at_processes(self, pids: list[int]) -> None:
        if sum(_num_threads(pid) for pid in pids) > self._processes:
            raise WireError(f"the process and what it started are more than {self._processes} threads")
        if sum(_memory_bytes(pid) for pid in pids) > self._memory_bytes:
            raise WireError(self._too_much("memory", self._memory_bytes))

    def _look_at_disk(self) -> None:
        if _disk_bytes(self._scratch) > self._disk_bytes:
            raise WireError(self._too_much("disk", self._disk_bytes))
        if free_bytes(self._scratch) < RESERVE_BYTES:
            raise WireError("the process filled the disk")

    @staticmethod
    def _too_much(what: str, num_bytes: int) -> str:
        return f"the process and what it started used more than {num_bytes >> 20} MiB of {what}"


def _num_threads(pid: int) -> int:
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/task"))
    return 0


def _memory_bytes(pid: int) -> int:
    """What the process would give back by ending: pages shared with others, such as the fork server's, by their share.

    Where we may not know that, its pages without those of files.
    """
    for path, names in ((f"/proc/{pid}/smaps_rollup", ("Pss:",)), (f"/proc/{pid}/status", ("RssAnon:", "RssShmem:"))):
        with contextlib.suppress(OSError), open(path) as file:
            return sum(int(line.split()[1]) << 10 for line in file if line.startswith(names))
    return 0


def _disk_bytes(folder: Path) -> int:
    """What the files of a folder take; a number beyond all limits when they are too many to count."""
    num_bytes = num_entries = 0
    for path, _, names in os.walk(folder):
        num_entries += 1 + len(names)
        if num_entries > MAX_ENTRIES:
            return 1 << 62
        for name in names:
            with contextlib.suppress(OSError):
                num_bytes += os.lstat(f"{path}/{name}").st_blocks * 512
    return num_bytes
