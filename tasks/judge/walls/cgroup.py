"""Control groups: one limit on memory and on processes for a worker and everything it starts, together.

Version 2 where its controllers are to be had, else version 1. Needs a place below our own group, or above it, where we
may make others: as root, or where one was delegated to us.
"""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.judge.walls.scratch import PREFIX

REMOVE_S = 1.0
_V2 = {"memory.max": "memory", "memory.swap.max": "nothing", "memory.oom.group": "yes", "pids.max": "processes"}
_V1 = {"memory": {"memory.limit_in_bytes": "memory", "memory.swappiness": "nothing"}, "pids": {"pids.max": "processes"}}
_MEMORY_LIMITS = ("memory.max", "memory.limit_in_bytes")
_KILLS = ("memory.events", "memory.oom_control")


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlGroup:
    """A place for one worker: a folder in each hierarchy that limits it."""

    folders: tuple[Path, ...]

    @property
    def entrances(self) -> list[str]:
        """Files that take in the process that writes to them."""
        return [str(folder / "cgroup.procs") for folder in self.folders]

    def limit(self, *, memory_bytes: int, processes: int) -> None:
        """Set the limits.

        Raises:
            OSError: if more is in use already.
        """
        numbers = {"memory": memory_bytes, "processes": processes, "nothing": 0, "yes": 1}
        for folder in self.folders:
            for name, what in {**_V2, **_V1["memory"], **_V1["pids"]}.items():
                if (folder / name).exists():
                    (folder / name).write_text(str(numbers[what]))

    @property
    def limits_processes(self) -> bool:
        return any((folder / "pids.max").exists() for folder in self.folders)

    @property
    def num_kills(self) -> int:
        """How many processes the kernel has ended in here for want of memory."""
        for folder in self.folders:
            for path in (folder / name for name in _KILLS):
                with contextlib.suppress(OSError):
                    rows = [line.split() for line in path.read_text().splitlines()]
                    return sum(int(row[1]) for row in rows if row[0] == "oom_kill")
        return 0

    @property
    def is_empty(self) -> bool:
        try:
            return not any((folder / "cgroup.procs").read_text() for folder in self.folders)
        except OSError:
            return False


class ControlGroups:
    """The groups of one judge, each used by one worker after another. Thread safe."""

    def __init__(self, name: str) -> None:
        """Find places for the groups of a judge of this name, and sweep those of killed judges from there."""
        self._places: dict[Path, int] = {}
        """Folder in a hierarchy -> file descriptor that holds its lock."""
        self._lock = threading.Lock()
        self._idle: list[ControlGroup] = []
        self._num_made = 0
        for parents, needed in _hierarchies():
            for parent in parents:
                _sweep(parent)
                if (fd := _made(parent / name, needed)) is not None:
                    self._places[parent / name] = fd
                    break
        if not any((place / needed).exists() for place in self._places for needed in _MEMORY_LIMITS):
            self.close()

    def take(self, *, memory_bytes: int, processes: int) -> ControlGroup | None:
        """An empty group with these limits; None where there are no control groups."""
        while True:
            with self._lock:
                group = self._idle.pop() if self._idle else None
                self._num_made += group is None
                name = f"worker-{self._num_made}"
            if group is None:
                break
            with contextlib.suppress(OSError):  # what is kept in it of files is more than the limit: left alone
                group.limit(memory_bytes=memory_bytes, processes=processes)
                return group
        group = ControlGroup(folders=tuple(place / name for place in self._places))
        try:
            for folder in group.folders:
                folder.mkdir()
            group.limit(memory_bytes=memory_bytes, processes=processes)
        except OSError:
            return None
        return group if group.folders else None

    def give_back(self, group: ControlGroup) -> None:
        """Let others have the group; one in which something is left is never used again."""
        if group.is_empty:
            with self._lock:
                self._idle.append(group)

    def close(self) -> None:
        """Remove all groups."""
        for place, fd in self._places.items():
            _remove(place)
            os.close(fd)
        self._places.clear()


def join(entrances: Sequence[str]) -> bool:
    """Put this process, and so all that it will start, into a group; whether that worked."""
    try:
        for entrance in entrances:
            Path(entrance).write_text("0")
    except OSError:
        return False
    return bool(entrances)


def _hierarchies() -> Iterator[tuple[list[Path], str]]:
    """Each hierarchy that can limit: folders to make groups in, best first, and a file that such a group then has."""
    own = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            own.update(dict.fromkeys(names.split(","), path))
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            before, _, after = line.partition(" - ")
            root, mounted_at = before.split()[3:5]
            kind, *_, options = after.split()
            controllers = [""] if kind == "cgroup2" else options.split(",") if kind == "cgroup" else []
            for controller in controllers:
                if controller in own and (controller == "" or controller in _V1):
                    folder = Path(mounted_at) / os.path.relpath(own[controller], root)
                    above = [folder, *folder.parents]
                    needed = "memory.max" if controller == "" else next(iter(_V1[controller]))
                    yield [path for path in above if path.is_relative_to(mounted_at)], needed


def _made(place: Path, needed: str) -> int | None:
    """Make and lock a folder for groups, unless they would lack the file that sets the limit."""
    try:
        place.mkdir()
        fd = _locked(place)
    except OSError:  # not ours to make, or another judge has just swept it
        return None
    with contextlib.suppress(OSError):
        if (place / "cgroup.subtree_control").exists():
            (place / "cgroup.subtree_control").write_text("+memory +pids")
        if (place / needed).exists():
            return fd
    _remove(place)
    os.close(fd)
    return None


def _locked(place: Path) -> int:
    """Hold the folder's lock, which says that its judge lives.

    Raises:
        OSError: if someone else holds it.
    """
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd


def _sweep(parent: Path) -> None:
    for place in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # in use, or gone already
            fd = _locked(place)
            _remove(place)
            os.close(fd)


def _remove(place: Path) -> None:
    """Remove a folder and the groups in it, as soon as the kernel has seen the last of their processes."""
    deadline = time.monotonic() + REMOVE_S
    for folder in [*(path for path in place.glob("*") if path.is_dir()), place]:
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                folder.rmdir()
            if not folder.exists():
                break
            time.sleep(0.01)
