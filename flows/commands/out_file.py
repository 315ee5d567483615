"""The file that --out names, written whole. Imports stay light."""

import os
from pathlib import Path

from tasks.errors import MachineError


def write_out(out: Path, content: bytes) -> None:
    """Put a file in place whole: an older one stays until then, and a link goes on leading to it.

    What is no file, such as a pipe or a device, is written into.

    Raises:
        MachineError: if it cannot be written.
    """
    try:
        if out.exists() and not out.is_file():
            out.write_bytes(content)
        else:
            _replace(Path(os.path.realpath(out)), content)
    except OSError as error:
        raise MachineError(f"{out} cannot be written: {error.strerror}; name another place with --out") from error


def _replace(file: Path, content: bytes) -> None:
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
