"""Which files in the folder of an optimization are its own, and may be written over."""

import json
import re
from pathlib import Path

from flows.optimizing.answers import ANSWERS
from flows.optimizing.judging import JOURNAL

REPORT, VERDICT = "report.md", "verdict.json"


def foreign_in(folder: Path) -> str | None:
    """The first name of our own under which something else stands; what is empty may be replaced."""
    is_own = {
        REPORT: _is_report(_text(folder / REPORT)),
        VERDICT: _is_verdict(_text(folder / VERDICT)),
        JOURNAL: _is_journal(folder / JOURNAL, "asked"),
        ANSWERS: _is_journal(folder / ANSWERS, "writer"),
    }
    return next((name for name, own in is_own.items() if not own and (folder / name).exists()), None)


def _is_report(text: str | None) -> bool:
    return text == "" or bool(text and re.match(r"# \w+ of .*\n", text) and "\n## What was tried\n" in text)


def _is_verdict(text: str | None) -> bool:
    try:
        found = json.loads(text or "null")
    except ValueError:
        return False
    return text == "" or (isinstance(found, dict) and found.keys() >= {"class", "speedup_over_eager"})


def _is_journal(path: Path, first_field: str) -> bool:
    """Whether the first row is one of ours as far as it was written, by a kill perhaps not to its end."""
    begin = f'{{"{first_field}": "'
    text = _text(path, len(begin))
    return text is not None and begin.startswith(text)


def _text(path: Path, characters: int = -1) -> str | None:
    """The beginning of a file; None where there is none, or no text, and hence none of ours."""
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(characters)
    except (OSError, UnicodeDecodeError):
        return None
