"""What the processes of a soak do to a history until they are killed: writers append, readers ask, all take notes."""

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

from tasks.errors import CudaL1Error
from tasks.history.records import Run
from tasks.judge.verdict import Status, Timing, Verdict
from tasks.problems.problem import Problem, Split
from tasks.variants.candidate import Candidate

BATCH = 20
ROUNDS = 9
BYSTANDER = "bystander"
PAUSES_S = {"writer": 0.5, "reader": 0.2, BYSTANDER: 0.2}
"""The longest pauses: a writer appends some 50 verdicts a second, many times what a judge reaches."""

# One query, hence as of one moment.
_COUNTS = "SELECT count(*), coalesce(sum(len(reference_ms)), 0)::BIGINT FROM verdicts"


def write_on(history: Path, notes: Path, end: float) -> None:
    """Append batch after batch until the end, from the first that is not acknowledged."""
    from tasks.history.store import History

    run = Run(run_id=notes.name, stage="soak", seed=0, params={}, started_at=0.0)
    acknowledged = sum(said == "ok" for _, said in read_notes(notes))

    def append() -> str:
        nonlocal acknowledged
        problem, candidates, verdicts = batch(notes.name, acknowledged)
        History(history).append(run, problems=[problem], candidates=candidates, verdicts=verdicts)
        acknowledged += 1
        return "ok"

    _go_on(append, notes, end)


def read_on(history: Path, notes: Path, end: float) -> None:
    """Ask again and again until the end; what is seen never shrinks and never holds a part of a batch."""
    from tasks.history.store import History

    seen = 0

    def ask() -> str:
        nonlocal seen
        if not history.exists():
            return "nothing yet"
        ((num_verdicts, num_rounds),) = History(history).query(_COUNTS).rows()
        if num_verdicts < seen or num_verdicts % BATCH or num_rounds != num_verdicts * ROUNDS:
            return f"{num_verdicts} verdicts with {num_rounds} rounds after {seen} verdicts"
        seen = num_verdicts
        return "ok"

    _go_on(ask, notes, end)


def _go_on(act: Callable[[], str], notes: Path, end: float) -> None:
    """Act until the end, and note after each time what it took and what was said, in one system call."""
    longest_pause_s = PAUSES_S[notes.name.partition("_")[0]]
    with notes.open("ab", buffering=0) as file:
        while (begun := time.monotonic()) < end:
            try:
                said = act()
            except CudaL1Error as error:
                said = f"{type(error).__name__}: {error}"
            file.write((json.dumps([time.monotonic() - begun, said]) + "\n").encode())
            time.sleep(random.uniform(0, longest_pause_s))


def read_notes(notes: Path) -> list[tuple[float, str]]:
    """How long each time took, and what was said."""
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [(taken_s, said) for taken_s, said in map(json.loads, lines)]


def batch(writer: str, number: int) -> tuple[Problem, list[Candidate], list[Verdict]]:
    """One append: so many candidates of the writer's own problem with a verdict each, the same ones every time."""
    problem = Problem(
        problem_id=f"level1/{writer}",
        level=1,
        family=writer,
        split=Split.TRAIN,
        source="class Model: ...\ndef get_inputs(): ...\n",
    )
    sources = [f"class ModelNew: ...  # {writer} {number} {place}\n" for place in range(BATCH)]
    candidates = [Candidate(problem_id=problem.problem_id, source=source, origin="soak") for source in sources]
    verdicts = [
        Verdict(
            candidate_id=candidate.candidate_id,
            problem_id=problem.problem_id,
            status=Status.CORRECT,
            device="none",
            protocol="soak",
            timing=Timing(baseline="eager", reference_ms=(2.0,) * ROUNDS, candidate_ms=(1.0,) * ROUNDS),
            seconds=0.0,
            judged_at=float(number),
        )
        for candidate in candidates
    ]
    return problem, candidates, verdicts


def quiet_history(path: Path) -> Path:
    """A history with one batch that nobody writes to any more."""
    from tasks.history.store import History

    problem, candidates, verdicts = batch(BYSTANDER, 0)
    run = Run(run_id=BYSTANDER, stage="soak", seed=0, params={}, started_at=0.0)
    History(path).append(run, problems=[problem], candidates=candidates, verdicts=verdicts)
    return path
