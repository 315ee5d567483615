"""The judge's folder for what its workers write, and the sweeping of folders that killed judges left behind."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

PREFIX = "cuda-l1-judge-"
_LOCK_NAME = "lock"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScratchFolder:
    """A folder that lives as long as its lock is held, which is at most as long as this process."""

    path: Path
    lock_fd: int

    @classmethod
    def make(cls) -> Self:
        """A new folder below the system's folder for temporary files; sweeps abandoned ones first."""
        _sweep(Path(tempfile.gettempdir()))
        path = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
        path.chmod(0o711)  # workers that are other users must get at folders of theirs below it
        return cls(path=path, lock_fd=_locked(path))

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self.lock_fd)


def compiler_cache(scratch: Path) -> Path:
    """Where compiled headers stay from one judge to the next: the user's cache folder, or else the scratch folder."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = caches / "cuda-l1" / "compiler"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return scratch / "compiler"
    return path if path.stat().st_uid == os.geteuid() and os.access(path, os.W_OK) else scratch / "compiler"


def _locked(path: Path) -> int:
    """Take the folder's lock without waiting.

    Raises:
        OSError: if someone else holds it.
    """
    fd = os.open(path / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd


def _sweep(parent: Path) -> None:
    for path in parent.glob(f"{PREFIX}*"):
        if path.stat().st_uid != os.geteuid():
            continue
        with contextlib.suppress(OSError):  # in use, or gone already
            fd = _locked(path)
            shutil.rmtree(path, ignore_errors=True)
            os.close(fd)
