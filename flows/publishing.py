"""Moving a stage's outputs to where DVC looks for them, and what stands in the way: places that take no file."""

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tasks.durable import flush
from tasks.errors import MachineError

FULL_BYTES = 1 << 20
"""With less than this free, a library's odd error is likely the disk's."""
PROBE_BYTES = 4096


def require_writable(folder: Path) -> None:
    """Refuse before a stage's work what would fail after it.

    Raises:
        MachineError: if nothing can be written into the folder, or where it would be made.
    """
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing, buffering=0) as file:
            file.write(bytes(PROBE_BYTES))
    except OSError as error:
        raise MachineError(
            f"{existing} cannot be written to: {error.strerror}; "
            f"make it writable or free some space, and run the same command again"
        ) from error


def publish(outputs: Path, target: Path) -> None:
    """Copy whole outputs to their place; the originals are kept until DVC has recorded the copies.

    Each is on the disk before it takes the place of an older one: what the next stage begins with outlasts a power cut.
    """
    target.mkdir(parents=True, exist_ok=True)
    for source in sorted(outputs.iterdir()):
        final, partial = target / source.name, target / f".{source.name}.partial"
        _remove(partial)
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, partial)
        flush(partial)
        _remove(final)
        partial.replace(final)
    flush(target)


def full_disks(folders: Iterable[Path]) -> list[Path]:
    """Those of the folders on whose disk there is no room left."""
    return [folder for folder in folders if folder.exists() and shutil.disk_usage(folder).free < FULL_BYTES]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
