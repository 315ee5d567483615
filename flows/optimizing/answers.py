"""The journal of what a search asked language models and policies, which a killed run continues."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from flows.parts.journal import Journal
from tasks.search.writers import Asked

ANSWERS = "answers.jsonl"


class Answers:
    """Every question of one search and its answer, word for word; a row with the answer follows that without.

    Args:
        folder: where the journal is.
        about: everything that the questions depend on besides the writer; others' stay in the file, unused.
    """

    def __init__(self, folder: Path, about: Sequence[str]) -> None:
        self._journal = Journal(folder / ANSWERS)
        self._about = list(about)
        self._asked: dict[tuple[str, int], Asked] = {}

    def of(self, writer: str, identity: Sequence[str]) -> list[Asked]:
        """What a writer was asked in runs before.

        Args:
            identity: what tells it from another writer of the same name.
        """
        key = self._key(identity)
        latest = {row["number"]: row for row in self._journal.rows if row["key"] == key and row["writer"] == writer}
        known = [Asked.from_json(row) for row in latest.values()]
        self._asked.update({(writer, asked.number): asked for asked in known})
        return known

    def note(self, asked: Asked, identity: Sequence[str]) -> None:
        """Keep a question, or the same with its answer."""
        self._asked[asked.writer, asked.number] = asked
        self._journal.append([asked.to_json() | {"key": self._key(identity)}])

    @property
    def asked(self) -> list[Asked]:
        """All questions of this search, those of runs before included."""
        return list(self._asked.values())

    def close(self) -> None:
        self._journal.close()

    def _key(self, identity: Sequence[str]) -> str:
        return hashlib.sha256(json.dumps([*self._about, *identity]).encode()).hexdigest()[:16]
