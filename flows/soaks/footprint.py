"""What this process and the judge in it have on the machine at one moment, to find what a judgement leaves behind."""

import os
import resource
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.judge.processes import descendants
from tasks.judge.walls.sandbox import FIRST_UID, NUM_UIDS
from tasks.judge.walls.scratch import PREFIX

SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
SHARED_MEMORY = ("/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg")
KEYS = "/proc/key-users"
WORKER_UIDS = range(FIRST_UID, FIRST_UID + NUM_UIDS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Footprint:
    """All that a judgement could leave behind, as it is at one moment."""

    counts: Mapping[str, int]
    """Things that may become fewer, such as file handles, by what they are."""
    settings: Mapping[str, str]
    """Things that must not change, by what they are."""
    files: frozenset[str]
    """Files and folders that must not become more."""

    def leftovers(self, after: "Footprint") -> list[str]:
        """What a later footprint has more than this one, or has changed."""
        found = [
            f"{after.counts[name]} {name}, {number} before"
            for name, number in self.counts.items()
            if after.counts[name] > number
        ]
        found += [
            f"{name} is {after.settings[name]}, {value} before"
            for name, value in self.settings.items()
            if after.settings[name] != value
        ]
        return found + [f"new file {name}" for name in sorted(after.files - self.files)]


def footprint(folders: Iterable[Path]) -> Footprint:
    """This process and its belongings on the machine.

    Args:
        folders: where nothing but judgements writes; looked at in depth, apart from the judge's own scratch.
    """
    return Footprint(
        counts={
            "file handles": len(os.listdir("/proc/self/fd")),
            "threads": len(os.listdir("/proc/self/task")),
            "processes": len(belongings()),
            "workers' folders": sum(1 for folder in folders for _ in folder.glob(f"{PREFIX}*/worker-*")),
            "shared segments": sum(len(Path(path).read_text().splitlines()) for path in SHARED_MEMORY),
            "keys of workers": _num_keys(),
        },
        settings=_settings(),
        files=frozenset(_own_files(folders)) | frozenset(_files_of_workers()),
    )


def belongings() -> set[int]:
    """Processes below this one, and any that share a network with one of those but not with this one.

    The latter have slipped away from their parents, but not out of the judge's network space.
    """
    below = set(descendants(os.getpid()))
    own = _network(os.getpid())
    networks = {_network(pid) for pid in below} - {own, ""}
    others = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return below | {pid for pid in others if _network(pid) in networks}


def _network(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def _settings() -> dict[str, str]:
    limits = [resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")]
    handlers = [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())]
    umask = os.umask(0o077)
    os.umask(umask)
    torch: Any = sys.modules.get("torch")
    flags = [torch.get_num_threads(), torch.is_grad_enabled(), torch.get_default_dtype()] if torch else []
    return {
        "niceness": str(os.getpriority(os.PRIO_PROCESS, 0)),
        "affinity": str(sorted(os.sched_getaffinity(0))),
        "signal mask": str(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))),
        "signal handlers": str(hash(tuple(handlers))),
        "limits": str(limits),
        "umask": oct(umask),
        "working folder": os.getcwd(),
        "environment": str(hash(tuple(sorted(os.environ.items())))),
        "torch": str(flags),
    }


def _own_files(folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        for path in folder.rglob("*"):
            if not any(part.startswith(PREFIX) for part in path.relative_to(folder).parts):
                yield str(path)


def _files_of_workers() -> Iterator[str]:
    """Files that belong to users whom only workers become, in folders that everybody may write to."""
    for folder in SHARED_FOLDERS:
        for entry in os.scandir(folder):
            try:
                if entry.stat(follow_symlinks=False).st_uid in WORKER_UIDS:
                    yield entry.path
            except FileNotFoundError:
                continue


def _num_keys() -> int:
    """Keys that the kernel keeps for users whom only workers become."""
    rows = (
        [line.replace(":", " ").split() for line in Path(KEYS).read_text().splitlines()] if Path(KEYS).exists() else []
    )
    return sum(int(row[1]) for row in rows if int(row[0]) in WORKER_UIDS)


def memory_bytes(pid: int) -> int:
    """Resident memory of one process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


@contextmanager
def private_folders(parent: Path) -> Iterator[list[Path]]:
    """New folders below this one as TMPDIR, HOME and working folder, until the end.

    The cache of compiled headers, which takes long to make and which only trusted code fills, stays where it is.
    """
    folders = [parent.resolve() / name for name in ("tmp", "home", "here")]
    for folder in folders:
        folder.mkdir(parents=True)
        folder.chmod(0o711)  # workers are other users
    caches = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    variables = {"TMPDIR": str(folders[0]), "HOME": str(folders[1]), "XDG_CACHE_HOME": caches}
    before = {name: os.environ.get(name) for name in variables}
    tempdir, there = tempfile.tempdir, os.getcwd()
    tempfile.tempdir = str(folders[0])
    os.environ.update(variables)
    os.chdir(folders[2])
    try:
        yield folders
    finally:
        os.chdir(there)
        tempfile.tempdir = tempdir
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({name: value} if value is not None else {})
