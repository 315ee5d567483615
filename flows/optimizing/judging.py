"""The judges of an optimization, one for each rung, and the record of their verdicts, which a killed run continues."""

import hashlib
import json
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from flows.parts.journal import Journal
from tasks.judge.batch import changed
from tasks.judge.judge import Judge
from tasks.judge.verdict import Status, Verdict
from tasks.params import JudgeParams, LongParams
from tasks.search.search import AGAIN, SCREEN

FINAL, EFFECTS, LONG, GRADIENTS = "drop-in", "effects", "long", "gradients"
JOURNAL = "journal.jsonl"
AFRESH = (FINAL, LONG)
"""Rungs on which what did not settle in a run before is judged again: what is written hangs on them."""


class Judges:
    """A judge for each rung, opened when it is first needed."""

    def __init__(self, params: JudgeParams, *, window_s: float) -> None:
        cheap = changed(params, trials=2, rounds=5, settled_error=0.08)
        exact = changed(params, rounds=9, settled_error=0.02)
        self._params = {SCREEN: cheap, AGAIN: exact, FINAL: exact, EFFECTS: cheap, GRADIENTS: exact}
        if window_s:
            self._params[LONG] = changed(params, tier="long", long=replace(LongParams(), window_s=window_s))  # type: ignore[type-var]
        self._open: dict[JudgeParams, Judge] = {}
        self._stack = ExitStack()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def at(self, rung: str) -> Judge:
        with self._lock:
            params = self._params[rung]
            if params not in self._open:
                self._open[params] = self._stack.enter_context(Judge(params))
            return self._open[params]


class Record:
    """Every verdict of one optimization by rung and text, in memory and in the journal.

    Args:
        folder: where the journal is; None keeps none.
        asked: everything that the verdicts depend on besides the texts; a journal about something else is begun anew.
    """

    def __init__(self, folder: Path | None, asked: Sequence[str]) -> None:
        self._journal = Journal(folder / JOURNAL) if folder else None
        self._lock = threading.Lock()
        digest = hashlib.sha256(json.dumps(list(asked)).encode()).hexdigest()[:16]
        self.known: dict[tuple[str, str], tuple[Verdict, float]] = {}
        """With the seconds that the search had taken until then."""
        if self._journal is None:
            return
        self._journal.keep(lambda row: row.get("asked") == digest)
        for row in self._journal.rows:
            verdict = Verdict.from_json(row["verdict"])
            if verdict.status is Status.UNSTABLE and row["rung"] in AFRESH:
                self.known.pop((row["rung"], verdict.candidate_id), None)  # the last word counts, whatever was before
                continue
            self.known[row["rung"], verdict.candidate_id] = verdict, row["elapsed_s"]
        self._asked = digest

    def add(self, rung: str, verdict: Verdict, *, elapsed_s: float) -> None:
        with self._lock:
            self.known[rung, verdict.candidate_id] = verdict, elapsed_s
            if self._journal is not None:
                row = {"asked": self._asked, "rung": rung, "elapsed_s": elapsed_s, "verdict": verdict.to_json()}
                self._journal.append([row])

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
