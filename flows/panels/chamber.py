"""A judge in a process of its own, which Ray starts where a device is free; the other end is flows/panels/panel.py."""

import contextlib
import hashlib
import platform
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tasks
from tasks.errors import MachineError
from tasks.judge.any_judge import AnyJudge
from tasks.judge.referees import local_judge
from tasks.judge.verdict import Verdict
from tasks.params import JudgeParams
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate


@dataclass(frozen=True, kw_only=True, slots=True)
class Sitting:
    """Where an opened judge sits."""

    machine: str
    device: str
    environment: Mapping[str, str]


class Chamber:
    """What Ray runs: one judge, asked by several threads of this process at once."""

    def __init__(self) -> None:
        self._judge: AnyJudge | None = None
        self._opened = contextlib.ExitStack()
        self._heard: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def open(self, params: JudgeParams, code: str) -> Sitting:
        """Open the judge.

        Args:
            code: code_hash of whoever asks; another judge's code would give other verdicts.

        Raises:
            MachineError: if this machine cannot judge, or has other code.
        """
        machine = platform.node()
        if code_hash() != code:
            raise MachineError(f"{machine} has another version of this package in {Path(tasks.__path__[0]).parent}")
        # Ray has given this process a core for each worker, and asks no more of it at once: nothing is built ahead.
        self._judge = self._opened.enter_context(local_judge(params, share=0.0))
        return Sitting(machine=machine, device=self._judge.device, environment=dict(self._judge.environment))

    def judge(
        self, ticket: str, problem: Problem, candidate: Candidate, *, seed: int, best_speedup: float | None
    ) -> Verdict:
        """What the judge says; until then, `heard` tells how far it is."""
        if self._judge is None:
            raise MachineError("the judge is not open")

        def hear(share: float, words: str) -> None:
            with self._lock:
                self._heard[ticket] = share, words

        try:
            return self._judge.judge(problem, candidate, seed=seed, best_speedup=best_speedup, on_progress=hear)
        finally:
            with self._lock:
                self._heard.pop(ticket, None)

    def heard(self, ticket: str) -> tuple[float, str] | None:
        """The last progress of a judgement under way, if there was any."""
        with self._lock:
            return self._heard.get(ticket)

    def close(self) -> None:
        """End all that the judge has started."""
        self._opened.close()


def code_hash() -> str:
    """Of the judge's code, and all else in tasks."""
    folder = Path(tasks.__path__[0])
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()
