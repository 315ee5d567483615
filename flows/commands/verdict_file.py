"""The file that a batch of cases writes its verdicts to, and continues after it was ended."""

import contextlib
import fcntl
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from flows.parts.journal import Journal
from tasks.errors import MachineError, RecordError
from tasks.judge.cases import Case

ROW_START = b'{"id": '
REMEDY = "delete it or give another --out"


class VerdictFile:
    """One line for each of the first cases, held for one process alone."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path, cases: Sequence[Case]) -> Iterator[Self]:
        """The file, after its lines were found to answer the first of these cases.

        Raises:
            RecordError: if it holds something else. It is then left as it is.
            MachineError: if it cannot be written, or another process is writing it.
        """
        with contextlib.ExitStack() as stack:
            with _writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                lock = stack.enter_context(path.open("ab"))
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _require_answers(path, cases)
                journal = Journal(path)  # drops a last line that a kill cut off
            try:
                yield cls(journal)
            finally:
                with _writing(path):
                    journal.close()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What stood in the file when it was opened."""
        return self._journal.rows

    def append(self, row: dict[str, Any]) -> None:
        with _writing(self._journal.path):
            self._journal.append([row])

    def require_begun_on(self, *, device: str, protocol: str, tier: str) -> None:
        """Refuse to put verdicts side by side that nobody may compare.

        Raises:
            RecordError: if the file was begun in another way.
        """
        for row in self.rows:
            begun = (row["device"], row["protocol"], row["tier"])
            if begun != (device, protocol, tier):
                raise RecordError(
                    f"{self._journal.path} was begun on {', '.join(begun)}, "
                    f"this is {device}, {protocol}, {tier}; {REMEDY}"
                )


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except BlockingIOError:
        raise MachineError(f"another process is writing {path}; wait for it, or give another --out") from None
    except OSError as error:
        raise MachineError(f"{path} cannot be written: {error}; mend that and give the same command again") from error


def _require_answers(path: Path, cases: Sequence[Case]) -> None:
    lines = path.read_bytes().split(b"\n")
    if any(line and not (line.startswith(ROW_START) or ROW_START.startswith(line)) for line in lines):
        raise RecordError(f"{path} holds something other than verdicts; {REMEDY}")
    if len(lines) - 1 > len(cases):
        raise RecordError(f"{path} holds {len(lines) - 1} verdicts for {len(cases)} cases; {REMEDY}")
    for number, (line, case) in enumerate(zip(lines[:-1], cases, strict=False), start=1):
        try:
            row = json.loads(line)
        except ValueError:
            raise RecordError(f"{path}, line {number} is no verdict; {REMEDY}") from None
        if row["id"] != case.case_id:
            raise RecordError(f"{path}, line {number} is on case {row['id']!r}, not {case.case_id!r}; {REMEDY}")
        if row.get("case") != case.digest:
            raise RecordError(
                f"{path}, line {number} answers another text or precision of case {case.case_id!r}; {REMEDY}"
            )
