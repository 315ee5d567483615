"""The ledger: every question ever sent to a paid endpoint and what came of it, in one SQLite file.

A question stands in it before it is sent and its answer before it is used, both safe from a power cut. So no answer is
bought twice, and what a killed process had in flight is known, though not its outcome.
"""

import sqlite3
import time
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from tasks.errors import MachineError, RecordError
from tasks.variants.llm.answers import Answer
from tasks.variants.llm.budget import Cost
from tasks.variants.llm.question import Question

VERSION = 1
PATIENCE_S = 10.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS purchases (
    request_id    TEXT PRIMARY KEY,
    generator     TEXT NOT NULL,
    model         TEXT NOT NULL,
    problem_id    TEXT NOT NULL,
    trial         INTEGER NOT NULL,
    outcome       TEXT NOT NULL CHECK (outcome IN ('asked', 'answered', 'lost', 'refused')),
    tokens        INTEGER NOT NULL,
    usd           REAL NOT NULL,
    prompt_tokens INTEGER,
    answer_tokens INTEGER,
    content       TEXT NOT NULL DEFAULT '',
    finish_reason TEXT NOT NULL DEFAULT '',
    served_model  TEXT NOT NULL DEFAULT '',
    detail        TEXT NOT NULL DEFAULT '',
    asked_at      REAL NOT NULL,
    ended_at      REAL
)
"""


class Outcome(StrEnum):
    """What came of a question."""

    ASKED = "asked"
    """In flight. Nothing else holds the file while it is open, so others that are found so were killed."""
    ANSWERED = "answered"
    LOST = "lost"
    """No answer came, though one may have been charged; it counts as the most that it can have cost."""
    REFUSED = "refused"
    """No answer and no cost; may be asked again."""
    UNASKED = "unasked"
    """Never sent, so never in the ledger: no money left, or its endpoint was given up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Purchase:
    """One question's outcome."""

    request_id: str
    outcome: Outcome
    cost: Cost = field(default_factory=Cost)
    """As counted against the caps: what the endpoint reported, or the most possible where it did not."""
    answer: Answer | None = None
    detail: str = ""
    """Why there is no answer."""
    is_final: bool = False
    """Whether more trials of the same generator at the same problem would end alike in this run."""

    @property
    def is_settled(self) -> bool:
        """Whether the question must never be sent again."""
        return self.outcome in (Outcome.ANSWERED, Outcome.LOST)


class Ledger:
    """One process at a time. Not safe to use from several threads; a commit waits for the disk.

    Raises:
        MachineError: from every method, if the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise MachineError(f"{path} cannot be opened: {error}") from error
        self._execute("PRAGMA locking_mode = EXCLUSIVE")
        self._execute("PRAGMA journal_mode = WAL")
        self._execute("PRAGMA synchronous = FULL")
        ((version,),) = self._execute("PRAGMA user_version")
        if version not in (0, VERSION):
            raise MachineError(f"{path} is of version {version}, and this program knows {VERSION}; update it")
        self._execute(_SCHEMA)
        self._execute(f"PRAGMA user_version = {VERSION}")
        self._execute(  # each at a moment of its own: costs that are alike in all, their time included, are one
            "UPDATE purchases SET outcome = 'lost', detail = ?, ended_at = ? + 1e-6 * rowid WHERE outcome = 'asked'",
            "in flight when the process that asked ended",
            time.time(),
        )

    def find(self, request_id: str) -> Purchase | None:
        """What is known of a question, if it was ever sent."""
        rows = self._execute(
            "SELECT request_id, outcome, tokens, usd, prompt_tokens, answer_tokens, content, finish_reason,"
            " served_model, detail FROM purchases WHERE request_id = ?",
            request_id,
        )
        for known, outcome, tokens, usd, prompt_tokens, answer_tokens, content, reason, model, detail in rows:
            answer = Answer(
                content=content,
                finish_reason=reason,
                prompt_tokens=prompt_tokens,
                answer_tokens=answer_tokens,
                served_model=model,
            )
            return Purchase(
                request_id=known,
                outcome=Outcome(outcome),
                cost=Cost(tokens=tokens, usd=usd),
                answer=answer if outcome == Outcome.ANSWERED else None,
                detail=detail,
            )
        return None

    def ask(self, question: Question, *, most: Cost) -> None:
        """Note that a question is about to be sent, and the most that it can cost."""
        written = self._execute(
            "INSERT INTO purchases (request_id, generator, model, problem_id, trial, outcome, tokens, usd, asked_at)"
            " VALUES (?, ?, ?, ?, ?, 'asked', ?, ?, ?) ON CONFLICT DO UPDATE SET outcome = excluded.outcome,"
            " tokens = excluded.tokens, usd = excluded.usd, asked_at = excluded.asked_at, ended_at = NULL"
            " WHERE outcome = 'refused' RETURNING request_id",
            question.request_id,
            question.generator,
            question.model,
            question.problem_id,
            question.trial,
            most.tokens,
            most.usd,
            time.time(),
        )
        if not written:
            raise RecordError(f"question {question.request_id} was asked before, and must not be again")

    def answered(self, request_id: str, answer: Answer, *, cost: Cost) -> None:
        """Keep an answer; once this returns it is there for good."""
        self._execute(
            "UPDATE purchases SET outcome = 'answered', tokens = ?, usd = ?, prompt_tokens = ?, answer_tokens = ?,"
            " content = ?, finish_reason = ?, served_model = ?, ended_at = ? WHERE request_id = ?",
            cost.tokens,
            cost.usd,
            answer.prompt_tokens,
            answer.answer_tokens,
            answer.content,
            answer.finish_reason,
            answer.served_model,
            time.time(),
            request_id,
        )

    def lost(self, request_id: str, detail: str) -> None:
        """Note that no answer came and that one may have been charged."""
        self._execute(
            "UPDATE purchases SET outcome = 'lost', detail = ?, ended_at = ? WHERE request_id = ?",
            detail,
            time.time(),
            request_id,
        )

    def refused(self, request_id: str, detail: str) -> None:
        """Note that no answer came and that nothing was charged."""
        self._execute(
            "UPDATE purchases SET outcome = 'refused', tokens = 0, usd = 0, detail = ?, ended_at = ?"
            " WHERE request_id = ?",
            detail,
            time.time(),
            request_id,
        )

    def spent(self, generator: str | None = None) -> Cost:
        """What everything in it cost, or all of one generator, or may have cost where that is in doubt."""
        ((tokens, usd),) = self._execute(
            "SELECT coalesce(sum(tokens), 0), coalesce(sum(usd), 0.0) FROM purchases WHERE ? IN ('', generator)",
            generator or "",
        )
        return Cost(tokens=tokens, usd=usd)

    def ended_at(self, request_id: str) -> float | None:
        """When a question came to its end, in Unix time; None where it has not."""
        rows = self._execute("SELECT ended_at FROM purchases WHERE request_id = ?", request_id)
        return rows[0][0] if rows else None

    def close(self) -> None:
        self._connection.close()

    def _execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            remedy = "; another process is buying: wait for it or end it" if "locked" in str(error) else ""
            raise MachineError(f"{self._path}: {error}{remedy}") from error
