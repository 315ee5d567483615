"""Telling the history of one run of a stage. A history that cannot be written never stops the stage.

Nothing light may import this file: duckdb and polars take a second.
"""

from collections.abc import Mapping, Sequence

from flows.engine import HISTORY, say
from tasks.errors import CudaL1Error, RetryableError
from tasks.history.hacks import HackCases, case_of
from tasks.history.records import Cost, Run, RunLink, Sample
from tasks.history.store import History
from tasks.judge.verdict import Verdict
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate


class Recorder:
    """Appends what a run did. What a busy history cannot be told is told with what comes next."""

    def __init__(self, run: Run, problems: Mapping[str, Problem]) -> None:
        self._run = run
        self._history = History(HISTORY)
        self._problems: Sequence[Problem] = list(problems.values())  # until the first append has told of them
        self._waiting: list[dict[str, Sequence[object]]] = []
        self._unwritable = False

    def candidates(self, candidates: Sequence[Candidate]) -> None:
        self._append(candidates=candidates)

    def verdicts(self, verdicts: Sequence[Verdict]) -> None:
        self._append(verdicts=verdicts)

    def samples(self, samples: Sequence[Sample]) -> None:
        self._append(samples=samples)

    def account(self, costs: Sequence[Cost], links: Sequence[RunLink]) -> None:
        """Tell on closing what the run spent besides judging, and what other systems call it."""
        # Apart: a cost may be of a candidate that the history could not be told of.
        told: list[dict[str, Sequence[object]]] = [{"links": links}, {"costs": costs}]
        self._waiting += [rows for rows in told if any(rows.values())]

    def hack(self, candidate: Candidate, verdict: Verdict) -> None:
        """Keep a candidate that the judge caught as a hacking case, unless the collection holds its like."""
        if self._unwritable:
            return
        failed = [check.name for check in verdict.checks if not check.passed]
        case = case_of(
            name=candidate.candidate_id,
            group=failed[-1] if failed else verdict.status.value,
            source=candidate.source,
            words=verdict.detail.partition("\n")[0],
            origin="judge",
        )
        try:
            HackCases(HISTORY).add_unless_alike(case)
        except CudaL1Error as error:
            say(f"warning: the hacking case {case.name} is not kept: {error}")

    def close(self) -> None:
        """Append what the history could not be told so far, or say what it lacks."""
        self._unwritable = False  # it may have been mended since
        self._append()
        if self._waiting:
            say(f"warning: the history lacks {len(self._waiting)} batch(es) of this run, which only its outputs hold")

    def _append(self, **rows: Sequence[object]) -> None:
        if any(rows.values()):
            self._waiting.append(rows)
        if self._unwritable:
            return
        try:
            while self._waiting:
                self._history.append(self._run, problems=self._problems, **self._waiting[0])  # type: ignore[arg-type]
                self._problems = ()
                self._waiting.pop(0)
        except RetryableError as error:
            say(f"the history is busy and is told later: {error}")
        except CudaL1Error as error:
            self._unwritable = True
            say(f"warning: the history is not being written: {error}")
