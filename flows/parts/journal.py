"""A file of JSON lines that is only ever appended to, and what a killed run left in it."""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from tasks.durable import flush, flush_open
from tasks.errors import RecordError

Record = TypeVar("Record")
_REMEDY = "delete the file: `dvc repro`, or the command that wrote it, makes it again"
_JOURNAL_REMEDY = "remove that line: what it held is done again"


class Journal:
    """Rows survive a kill and a power cut once append has returned: a checkpoint never counts on rows that are lost.

    A last line that was cut off is dropped when the file is reopened.

    Args:
        remedy: for a damaged line, where the rest cannot do without it or what it held is not done again.

    Raises:
        RecordError: if a line is damaged; the file is then left as it is.
    """

    def __init__(self, path: Path, *, remedy: str = _JOURNAL_REMEDY) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.read_bytes() if path.exists() else b""
        kept = whole[: whole.rfind(b"\n") + 1]
        self.rows: list[dict[str, Any]] = _parsed(kept, path, remedy)
        """What stood in the file when it was opened."""
        self._file = path.open("ab", buffering=0)
        self._file.truncate(len(kept))
        flush(path)  # its name too, without which rows on the disk would be nowhere

    def append(self, rows: Iterable[dict[str, Any]]) -> None:
        """Write rows in one system call, so that a kill leaves at most the last line cut off, and wait for the disk.

        Raises:
            OSError: if the disk is full; none of the rows is in the file then, and appending may be tried again.
        """
        left = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        if not left:
            return
        size = os.fstat(self._file.fileno()).st_size
        try:
            while left:
                left = left[self._file.write(left) :]
            # Milliseconds, unless much else is being written; what a row tells of took longer: a verdict, a step.
            flush_open(self._file.fileno())
        except OSError:
            self._file.truncate(size)
            raise

    def keep(self, wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Drop the rows that are not wanted, from the file too; it is the old or the new one at any moment."""
        self.rows = [row for row in self.rows if wanted(row)]
        self._file.close()
        partial = self.path.with_name(f".{self.path.name}.partial")
        partial.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in self.rows))
        flush(partial)
        partial.replace(self.path)
        flush(self.path)
        self._file = self.path.open("ab", buffering=0)

    def close(self) -> None:
        self._file.close()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a whole JSON-lines file, such as a stage's output.

    Raises:
        RecordError: if it is missing or a line does not parse.
    """
    try:
        whole = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}; `dvc repro` makes it") from error
    return _parsed(whole, path, _REMEDY)


def read_records(path: Path, from_row: Callable[[dict[str, Any]], Record]) -> list[Record]:
    """The records that stand in a stage's output, one a line.

    Raises:
        RecordError: if the file is missing, or a line does not hold such a record.
    """
    rows = read_rows(path)
    try:
        return [from_row(row) for row in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{path} holds a line that is not as it was written ({error}); {_REMEDY}") from error


def _parsed(lines: bytes, path: Path, remedy: str) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(lines.splitlines(), start=1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise RecordError(f"{path}, line {number} is no JSON object: {line[:80]!r}; {remedy}")
        rows.append(row)
    return rows
