"""A file of JSON lines that is only ever appended to, and what a killed run left in it."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tasks.errors import RecordError


class Journal:
    """Rows survive a kill once append has returned; a last line cut off by one is dropped when the file is reopened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.read_bytes() if path.exists() else b""
        kept = whole[: whole.rfind(b"\n") + 1]
        self.rows: list[dict[str, Any]] = [_parsed(line, path) for line in kept.splitlines()]
        """What stood in the file when it was opened."""
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._file.truncate(len(kept))
        self._file.seek(0, 2)

    def append(self, rows: Iterable[dict[str, Any]]) -> None:
        """Write rows in one system call, so that a kill leaves at most the last line cut off."""
        self._file.write(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
        self._file.flush()

    def keep(self, wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Drop the rows that are not wanted, from the file too; it is the old or the new one at any moment."""
        self.rows = [row for row in self.rows if wanted(row)]
        self._file.close()
        partial = self.path.with_name(f".{self.path.name}.partial")
        partial.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in self.rows))
        partial.replace(self.path)
        self._file = self.path.open("r+b")
        self._file.seek(0, 2)

    def close(self) -> None:
        self._file.close()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a whole JSON-lines file, such as a stage's output.

    Raises:
        RecordError: if it is missing or a line does not parse.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}; `dvc repro` makes it") from error
    return [_parsed(line, path) for line in lines]


def _parsed(line: bytes, path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(line))
    except ValueError as error:
        raise RecordError(f"{path} holds a line that is no JSON object: {line[:80]!r}; delete the file") from error
