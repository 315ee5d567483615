"""Waiting until what was written is on the disk, so that it is still there after a power cut."""

import os
from pathlib import Path


def flush(path: Path) -> None:
    """Wait until a file, or a folder with all that is in it, is on the disk, and its name in the folder above too."""
    within = path.rglob("*") if path.is_dir() else ()
    for each in (*within, path, path.parent):
        descriptor = os.open(each, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError:
            if not each.is_dir():  # of folders not every file system of a network can do so
                raise
        finally:
            os.close(descriptor)
