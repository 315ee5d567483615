"""The judge's folder for what its workers write, and the sweeping of folders that killed judges left behind."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tasks.errors import MachineError

PREFIX = "cuda-l1-judge-"
RESERVE_BYTES = 64 << 20  # with less than this free, a failure may be the disk's
_LOCK_NAME = "lock"
_BEGINNING_S = 60.0  # a folder is made, or removed, in far less
SCRATCH_REMEDY = "free space there, or set TMPDIR to a folder on another disk"
CACHE_REMEDY = "free space there, or set XDG_CACHE_HOME to a folder on another disk"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScratchFolder:
    """A folder that lives as long as its lock is held, which is at most as long as this process."""

    path: Path
    lock_fd: int

    @classmethod
    def make(cls) -> Self:
        """A new folder below the system's folder for temporary files; sweeps abandoned ones first.

        Raises:
            MachineError: if it cannot be made there.
        """
        try:
            _sweep(Path(tempfile.gettempdir()))
            path = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
            try:
                path.chmod(0o711)  # workers that are other users must get at folders of theirs below it
                return cls(path=path, lock_fd=_held(path))
            except OSError:
                shutil.rmtree(path, ignore_errors=True)
                raise
        except OSError as error:
            raise MachineError(f"the judge cannot make a scratch folder: {error}; {SCRATCH_REMEDY}") from error

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self.lock_fd)


def require_space(folder: Path, *, num_bytes: int, remedy: str) -> None:
    """Refuse a disk too full to tell whose fault a failure is.

    Raises:
        MachineError: if less than this is free where the folder is, or would be made.
    """
    free = free_bytes(folder)
    if free < num_bytes:
        raise MachineError(
            f"the disk of {folder} is full: {free >> 20} MiB are free of the {num_bytes >> 20} MiB "
            f"that the judge needs; {remedy}"
        )


def free_bytes(folder: Path) -> int:
    """What is free on the disk where the folder is, or would be made."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(existing).free


def compiler_cache(scratch: Path) -> Path:
    """Where compiled headers stay from one judge to the next: the user's cache folder, or else the scratch folder."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = caches / "cuda-l1" / "compiler"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return scratch / "compiler"
    return path if path.stat().st_uid == os.geteuid() and os.access(path, os.W_OK) else scratch / "compiler"


def _held(path: Path) -> int:
    """A lock that is held from the moment at which others can see it."""
    unseen = path / f".{_LOCK_NAME}"
    fd = os.open(unseen, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unseen.rename(path / _LOCK_NAME)
    except OSError:
        os.close(fd)
        raise
    return fd


def _sweep(parent: Path) -> None:
    for path in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # in use, or gone already
            if path.stat().st_uid == os.geteuid():
                _remove_abandoned(path)


def _remove_abandoned(path: Path) -> None:
    """Remove a folder whose lock nobody holds, or that has been without one for longer than it takes to make one.

    Raises:
        OSError: if somebody holds the lock.
    """
    try:
        fd = os.open(path / _LOCK_NAME, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        if time.time() - path.stat().st_mtime > _BEGINNING_S:
            shutil.rmtree(path, ignore_errors=True)
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(fd)
