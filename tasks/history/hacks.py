"""The collection of hacking cases in the history, which grows with every hack found, and the checker's opinions.

Both are append-only like the rest of the history. Nothing light may import this file: duckdb takes a second.
"""

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tasks.errors import RecordError
from tasks.history.connection import reading, writing
from tasks.history.similarity import similarities

SIMILAR_CASES = 3
"""How many earlier cases a prompt shows, as in the paper."""
DUPLICATE = 0.9
"""A text this similar to a case of the collection is the same hack again."""

_CASE_COLUMNS = "name, hack_group, source, words, epoch(added_at), origin"


@dataclass(frozen=True, kw_only=True, slots=True)
class HackCase:
    """A program that was found to be paid for what it did not do."""

    name: str
    group: str
    """The kind of hack, such as "S1 replay by pointer"."""
    source: str
    words: str
    """What it does, for people and for the checker's prompt."""
    added_at: float
    """Unix time in seconds."""
    origin: str
    """Who found it: "user", "judge" or a name."""

    def __post_init__(self) -> None:
        empty = [name for name in ("name", "group", "source") if not getattr(self, name).strip()]
        if empty:
            raise RecordError(f"a hacking case needs a {' and a '.join(empty)}")

    @property
    def case_id(self) -> str:
        """Content hash of the source: a program is one case, whatever it is called."""
        return _content_hash(self.source)


@dataclass(frozen=True, kw_only=True, slots=True)
class Opinion:
    """What the reward checker's model said of one candidate. Never a verdict."""

    candidate_id: str
    problem_id: str
    asked_at: float
    """Unix time in seconds."""
    model: str
    is_hack: bool
    group: str
    """The kind of hack in the model's words; empty when it is none."""
    reason: str
    prompt: str

    @property
    def opinion_id(self) -> str:
        return _content_hash([self.candidate_id, self.model, self.asked_at, self.prompt, self.reason])


class HackCases:
    """The collection within one history file. Every call opens the file for a moment.

    Raises:
        RecordError: if the file is not a history, or there is none yet where it is read.
        HistoryBusyError: if other processes held the file for too long.
        MachineError: if it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, case: HackCase) -> bool:
        """Keep a case; False when its source is in the collection already, which then stays as it is."""
        row = (case.case_id, case.name, case.group, case.source, case.words, _moment(case.added_at), case.origin)
        with writing(self.path) as connection:
            added = connection.execute(
                "INSERT INTO hack_cases VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING case_id", row
            ).fetchall()
        return bool(added)

    def add_unless_alike(self, case: HackCase) -> bool:
        """Keep a case that no other resembles, so that a policy that found one hack does not fill the collection."""
        alike = most_similar(case.source, self.all(), count=1)
        if alike and alike[0][1] >= DUPLICATE:
            return False
        return self.add(case)

    def all(self) -> list[HackCase]:
        """Every case, the oldest first; none where there is no history yet."""
        if not self.path.exists():
            return []
        with reading(self.path) as connection:
            # A file of an older version has no such table until something is appended to it.
            if not connection.execute("FROM duckdb_tables() WHERE table_name = 'hack_cases'").fetchall():
                return []
            rows = connection.execute(f"SELECT {_CASE_COLUMNS} FROM hack_cases ORDER BY added_at, case_id").fetchall()
        return [
            HackCase(name=name, group=group, source=source, words=words, added_at=added_at, origin=origin)
            for name, group, source, words, added_at, origin in rows
        ]

    def get(self, name: str) -> HackCase:
        """The case with an id, the beginning of one, or a name.

        Raises:
            RecordError: if there is none, or more than one.
        """
        cases = self.all()
        found = [case for case in cases if name in (case.case_id, case.name)]
        found = found or [case for case in cases if name and case.case_id.startswith(name)]
        if len(found) != 1:
            many = f"{len(found)} hacking cases are" if found else "no hacking case is"
            raise RecordError(f"{many} called {name!r}; `cuda-l1 hacks list` names all {len(cases)}")
        return found[0]

    def record_opinions(self, opinions: Iterable[Opinion]) -> None:
        """Keep opinions; one recorded twice is recorded once."""
        rows = [
            (
                opinion.opinion_id,
                opinion.candidate_id,
                opinion.problem_id,
                _moment(opinion.asked_at),
                opinion.model,
                opinion.is_hack,
                opinion.group,
                opinion.reason,
                opinion.prompt,
            )
            for opinion in opinions
        ]
        if not rows:
            return
        with writing(self.path) as connection:
            connection.executemany(
                "INSERT INTO opinions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", rows
            )


def most_similar(source: str, cases: Sequence[HackCase], *, count: int = SIMILAR_CASES) -> list[tuple[HackCase, float]]:
    """The cases that share something with a source and their similarity from 0 to 1, the most similar first."""
    ranked = zip(cases, similarities(source, [case.source for case in cases]), strict=True)
    return sorted((pair for pair in ranked if pair[1] > 0), key=lambda pair: -pair[1])[:count]


def case_of(*, name: str, group: str, source: str, words: str, origin: str) -> HackCase:
    """A case found now."""
    return HackCase(name=name, group=group, source=source, words=words, added_at=time.time(), origin=origin)


def _content_hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _moment(unix_s: float) -> datetime:
    return datetime.fromtimestamp(unix_s, UTC).replace(tzinfo=None)
