"""Cases: a reference and a candidate that somebody wants judged, and the one form in which the answer is given."""

import difflib
import functools
import hashlib
import importlib.util
import json
import logging
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tasks.errors import ProblemError, RecordError
from tasks.judge.verdict import Verdict
from tasks.problems.problem import PRECISIONS, Problem, Split
from tasks.variants.candidate import Candidate

logger = logging.getLogger(__name__)

NEEDED = ("id", "ref", "candidate")
FIELDS = (*NEEDED, "precision")
"""Of a line of a file of cases."""
MAX_FILE_BYTES = 1 << 20
LONGEST_NAME = 80
PRIVATE = ("candidate_id", "problem_id", "settled")
"""What a verdict carries for the history; a row has the case's own id, and the speedup as numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """A source, or why there is none."""

    name: str
    """Where it comes from, for messages."""
    source: str = ""
    mistake: str = ""
    """Why the file cannot be read; empty when it was."""

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """The file's text, decoded as Python would. A file that cannot be read is a text with a mistake."""
        name = str(path) if len(str(path)) <= LONGEST_NAME else f"...{str(path)[-LONGEST_NAME:]}"
        try:
            if not path.is_file():  # a pipe or a device would never end
                return cls(name=name, mistake=f"there is no file {name!r}")
            with path.open("rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
            if len(content) > MAX_FILE_BYTES:
                return cls(name=name, mistake=f"{name} has more than {MAX_FILE_BYTES} bytes")
            return cls(name=name, source=importlib.util.decode_source(content))
        except (OSError, ValueError, SyntaxError) as error:
            return cls(name=name, mistake=f"{name} cannot be read: {error}")

    @classmethod
    def of_value(cls, value: str | Path, *, folder: Path, name: str) -> Self:
        """A value with a line break is a source; any other is a path, relative to the folder or absolute.

        >>> Text.of_value("x = 1\\n", folder=Path(), name="candidate").source
        'x = 1\\n'
        """
        if isinstance(value, str) and "\n" in value:
            return cls(name=name, source=value)
        return cls.of_file(folder / value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One question to the judge."""

    case_id: str | int
    """Given back with the verdict. Need not be unique: verdicts come in the order of the cases."""
    reference: Text
    candidate: Text
    precision: str = "fp32"
    """How exactly the candidate must compute, one of problem.PRECISIONS."""

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise RecordError(f"precision {self.precision!r} is not one of {', '.join(PRECISIONS)}")

    @property
    def digest(self) -> str:
        """Hash of all that is asked: a verdict answers this case only if it carries the same."""
        asked = [
            self.case_id,
            self.precision,
            *([text.source, bool(text.mistake)] for text in (self.reference, self.candidate)),
        ]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]

    def problem(self) -> Problem:
        """The reference as a problem.

        Raises:
            ProblemError: if it cannot be read, does not parse or lacks a name.
        """
        if self.reference.mistake:
            raise ProblemError(self.reference.mistake)
        try:
            return Problem(
                problem_id=self.reference.name,
                level=1,
                family=self.reference.name,
                split=Split.HELD_OUT,
                source=self.reference.source,
                precision=self.precision,
            )
        except (RecursionError, MemoryError) as error:  # what the parser raises at deep nesting
            raise ProblemError(f"problem {self.reference.name} does not parse: {type(error).__name__}") from None

    def as_candidate(self) -> Candidate:
        return Candidate(problem_id=self.reference.name, source=self.candidate.source, origin="case")


def read_cases(path: Path, *, precision: str = "fp32") -> list[Case]:
    """The cases of a file with lines ``{"id", "ref", "candidate"}``, and all the texts that they name.

    "ref" and "candidate" are sources if they have a line break, else paths relative to the file's folder. A text that
    cannot be read is for the judge to answer; a line that is no case is not. Other fields are left alone, and a warning
    names them.

    Args:
        precision: of the lines that have no "precision".

    Raises:
        RecordError: naming the first line that is no case, or if the file itself cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    text = functools.cache(functools.partial(Text.of_value, folder=path.parent))  # many cases share a reference
    wheres = {f"{path}, line {number}": line for number, line in enumerate(lines, start=1) if line.strip()}
    rows = {where: _row(line, where=where) for where, line in wheres.items()}
    if others := dict.fromkeys(name for row in rows.values() for name in row if name not in FIELDS):
        words = "%s has fields that mean nothing here: %s; a case has %s"
        logger.warning(words, path, ", ".join(others), ", ".join(FIELDS))
    return [_case(row, where=where, text=text, precision=precision) for where, row in rows.items()]


def verdict_row(case: Case, verdict: Verdict, *, tier: str) -> dict[str, Any]:
    """The public form of a verdict, one JSON object: what every way of asking the judge gives back.

    "reference_ms" and "candidate_ms" are medians; every round of either stands under "rounds". What is not known,
    such as the speedup of a wrong candidate, is null.
    """
    facts = {name: value for name, value in verdict.to_json().items() if name not in PRIVATE}
    timing = verdict.timing
    speedup = timing.speedup if timing else None
    return {
        "id": case.case_id,
        "case": case.digest,
        "status": facts.pop("status"),
        "detail": facts.pop("detail"),
        "speedup": speedup.median if speedup else None,
        "speedup_low": speedup.low if speedup else None,
        "speedup_high": speedup.high if speedup else None,
        **facts,
        "tier": tier,
        "precision": case.precision,
        "reference_ms": statistics.median(timing.reference_ms) if timing else None,
        "candidate_ms": statistics.median(timing.candidate_ms) if timing else None,
        "checks": [
            {"name": check.name, "passed": check.passed, "evidence": check.evidence} for check in verdict.checks
        ],
        "rounds": {"reference_ms": list(timing.reference_ms), "candidate_ms": list(timing.candidate_ms)}
        if timing
        else None,
    }


def _row(line: str, *, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RecordError(f'{where} is no case {{"id", "ref", "candidate"}}: {error} in {line[:80]!r}') from error
    if not isinstance(row, dict):
        raise RecordError(f'{where} is no case {{"id", "ref", "candidate"}}: {line[:80]!r} is no JSON object')
    if missing := [name for name in NEEDED if name not in row]:
        raise RecordError(f'{where} is no case {{"id", "ref", "candidate"}}: {line[:80]!r} lacks {", ".join(missing)}')
    return row


def _case(row: dict[str, Any], *, where: str, text: Callable[..., Text], precision: str) -> Case:
    case_id, reference, candidate = (row[name] for name in NEEDED)
    slips = difflib.get_close_matches("precision", row, n=1, cutoff=0.8)  # other fields change no verdict
    if slips and "precision" not in row:
        raise RecordError(f"{where}: {slips[0]!r} is no field of a case; is 'precision' meant?")
    if not isinstance(case_id, str | int) or not isinstance(reference, str) or not isinstance(candidate, str):
        raise RecordError(f"{where}: id must be a string or an integer, ref and candidate strings; got {str(row)[:80]}")
    try:
        return Case(
            case_id=case_id,
            reference=text(reference, name="reference"),
            candidate=text(candidate, name="candidate"),
            precision=row.get("precision", precision),
        )
    except RecordError as error:
        raise RecordError(f"{where}: {error}") from error
