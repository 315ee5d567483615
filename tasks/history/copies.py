"""A copy of a history as of one moment, for what takes long or changes it: the file itself is free meanwhile."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.errors import MachineError, RecordError
from tasks.history.connection import reading, writing
from tasks.history.tables import quoted, tables_of


@contextmanager
def copied(path: Path) -> Iterator[Path]:
    """A copy in a scratch folder, with what a killed writer left beside the file.

    Raises:
        RecordError: if there is no file, or it is not a history this version can read.
        HistoryBusyError: if another process held the lock for too long.
        MachineError: if there is no room for the copy.
    """
    with tempfile.TemporaryDirectory(prefix="history-") as folder:
        copy = Path(folder, "history.duckdb")
        with reading(path):
            _copy(path, copy)
            if wal_of(path).exists():
                _copy(wal_of(path), wal_of(copy))
        yield copy


@contextmanager
def migrated_copy(path: Path) -> Iterator[Path]:
    """A copy that this version's schema fits and of which every row can be read; the file stays as it is."""
    with copied(path) as copy:
        with speaking_of(path, copy), writing(copy) as connection:  # which migrates it
            # Read once as a whole: what is damaged is found here, where it can only be this file.
            for table in tables_of(connection):
                name = quoted(table.name)
                connection.execute(f"SELECT bit_xor(hash({name})) FROM {name}")
        yield copy


@contextmanager
def speaking_of(path: Path, copy: Path) -> Iterator[None]:
    """Errors about a copy become errors about the file it was made of."""
    try:
        yield
    except RecordError as error:
        raise RecordError(str(error).replace(str(copy), str(path))) from error


def wal_of(path: Path) -> Path:
    """Where DuckDB keeps what it has committed but not yet put into the file."""
    return path.with_name(f"{path.name}.wal")


def _copy(source: Path, target: Path) -> None:
    """In a process of its own: closing any descriptor of a file ends all locks that its process holds on it."""
    command = shutil.which("cp")
    if command is None:
        raise MachineError("the program cp is missing; install coreutils")
    done = subprocess.run([command, "--", source, target], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MachineError(f"{source} cannot be copied: {done.stderr.strip()}; free some space for temporary files")
