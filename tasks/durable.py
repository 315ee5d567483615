"""Waiting until what was written is on the disk, so that it is still there after a power cut."""

import errno
import os
from pathlib import Path

# Of what cannot be flushed: some file systems of networks, and folders of many more.
_UNSUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}


def flush(path: Path) -> None:
    """Wait until a file, or a folder with all that is in it, is on the disk, and its name in the folder above too."""
    within = path.rglob("*") if path.is_dir() else ()
    for each in (*within, path, path.parent):
        try:
            descriptor = os.open(each, os.O_RDONLY)
        except PermissionError:
            if each.is_dir():  # one that may be written to and not be listed
                continue
            raise
        try:
            flush_open(descriptor)
        except OSError:
            if not each.is_dir():
                raise
        finally:
            os.close(descriptor)


def flush_open(descriptor: int) -> None:
    """Wait until what was written to an open file is on the disk, where its file system can say so.

    Raises:
        OSError: if it cannot be written, such as where no room is left.
    """
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
