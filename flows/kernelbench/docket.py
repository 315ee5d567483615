"""What is to be judged for a benchmark and what was: a journal of verdicts that any machine can go on with."""

import fcntl
import hashlib
import json
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from flows.engine import progress
from flows.parts.journal import Journal
from tasks.errors import FullDeviceError, MachineError, RecordError
from tasks.judge.any_judge import AnyJudge
from tasks.judge.baselines import baseline_candidate
from tasks.judge.device_memory import may_be_about_full_device
from tasks.judge.verdict import Verdict
from tasks.problems.problem import Problem
from tasks.report.rejudged import Answer
from tasks.variants.candidate import Candidate
from tasks.variants.imported import ImportedKernel

JOURNAL = "verdicts.jsonl"
STAGE = "kernelbench"
TRIES = 3
SEED = 0
"""Decides the order of rounds; inputs depend on a secret of the judge besides."""
AHEAD = 0.8
"""After this share of the others the last level is through: its programs compile for minutes, and what is begun last
would keep a device waiting."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DocketCase:
    """One text to be judged."""

    problem: Problem
    candidate: Candidate

    @property
    def key(self) -> tuple[str, str]:
        """What is asked: equal keys have equal answers."""
        return self.problem.problem_hash, self.candidate.candidate_id


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """What one session of judging has left without an answer, besides what it did not begin."""

    crowded: list[DocketCase] = field(default_factory=list)
    """Ran out of memory beside others: only alone does that say something about the candidate."""
    failures: list[str] = field(default_factory=list)
    """On what the judge itself failed, in words; it is tried again the next time."""


class Docket:
    """All answers given so far, of whatever devices; an answer is on disk before it counts. Thread safe."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self.answers = [_answer(row, journal.path) for row in journal.rows]

    @classmethod
    @contextmanager
    def open(cls, folder: Path) -> Iterator[Self]:
        """The docket of a folder, for as long as nobody else has it.

        Raises:
            MachineError: if another process has it open.
            RecordError: if the journal holds something else than answers.
        """
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise MachineError(
                    f"another process is at work in {folder}; wait for it or give another --out"
                ) from None
            journal = Journal(folder / JOURNAL)
            try:
                yield cls(journal)
            finally:
                journal.close()

    def keep(self, case: DocketCase, verdict: Verdict, *, is_recalled: bool = False) -> None:
        """Write an answer down."""
        answer = Answer(
            problem_hash=case.problem.problem_hash,
            origin=case.candidate.origin,
            verdict=verdict,
            is_recalled=is_recalled,
        )
        self._write(answer, problem_set=case.problem.problem_set)

    def take_over(self, answers: Iterable[Answer], problems: Iterable[Problem]) -> int:
        """Write down what others were answered about these problems, but for what is known; how many that were."""
        sets = {problem.problem_hash: problem.problem_set for problem in problems}
        known = {_identity(answer) for answer in self.answers}
        news = [each for each in answers if each.problem_hash in sets and _identity(each) not in known]
        for answer in news:
            self._write(answer, problem_set=sets[answer.problem_hash])
        return len(news)

    def _write(self, answer: Answer, *, problem_set: str) -> None:
        about = {name: getattr(answer, name) for name in ("problem_hash", "origin", "is_recalled")}
        with self._lock:
            self._journal.append([{"problem_set": problem_set, **about, **answer.verdict.to_json()}])
            self.answers.append(answer)

    def pending(self, cases: Sequence[DocketCase], judge: AnyJudge) -> list[DocketCase]:
        """Those without an answer from such a device under this protocol and version of torch."""
        torch = judge.environment["torch"]
        known = {
            (answer.problem_hash, answer.verdict.candidate_id)
            for answer in self.answers
            if (answer.verdict.device, answer.verdict.protocol) == (judge.device, judge.protocol)
            and answer.verdict.environment.get("torch") == torch
        }
        return [case for case in cases if case.key not in known]

    def recall(self, history: Path, judge: AnyJudge, problems: Iterable[Problem], baselines: Sequence[str]) -> int:
        """Take over what a history knows about baselines; returns how many verdicts that were."""
        from tasks.history.known import known_verdicts

        todo = {case.key: case for case in self.pending(cases_of(problems, (), baselines), judge)}
        found = known_verdicts(
            history,
            [candidate_id for _, candidate_id in todo],
            device=judge.device,
            protocol=judge.protocol,
            environment=dict(judge.environment),
        )
        newest = {(text, verdict.candidate_id): verdict for text, verdict in found}
        taken = [(case, newest[key]) for key, case in todo.items() if key in newest]
        for case, verdict in taken:
            self.keep(case, verdict, is_recalled=True)
        return len(taken)

    def tell(self, history: Path, problems: Mapping[str, Problem], kernels: Iterable[ImportedKernel]) -> None:
        """Append all answers on these problems to a history; what it has already stays as it is.

        Raises:
            CudaL1Error: if the history is busy or cannot be written.
        """
        from tasks.history.records import Run
        from tasks.history.store import History
        from tasks.judge.baselines import BASELINES

        cases = {case.key: case for case in cases_of(problems.values(), kernels, BASELINES)}
        found = [
            (cases[key], answer.verdict)
            for answer in self.answers
            if not answer.is_recalled and (key := (answer.problem_hash, answer.verdict.candidate_id)) in cases
        ]
        if not found:
            return
        texts = sorted((problem.problem_id, problem.problem_hash) for problem in problems.values())
        digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]
        run = Run(
            run_id=f"{STAGE}-{digest}",
            stage=STAGE,
            seed=SEED,
            params={"problem_sets": sorted({problem.problem_set for problem in problems.values()})},
            started_at=min(verdict.judged_at for _, verdict in found),
            git_commit=None,
            versions={},
        )
        History(history).append(
            run,
            problems=problems.values(),
            candidates=[case.candidate for case, _ in found],
            verdicts=[verdict for _, verdict in found],
        )


def cases_of(
    problems: Iterable[Problem], kernels: Iterable[ImportedKernel], baselines: Sequence[str]
) -> list[DocketCase]:
    """Problem by problem, its baselines and then its kernels: what is known about a problem is not kept for long.

    Levels go on in step, so that some compile while others are measured, and a run that is ended has something of each.
    """
    by_problem: dict[str, list[Candidate]] = {}
    for kernel in kernels:
        if kernel.candidate is not None:
            by_problem.setdefault(kernel.problem_id, []).append(kernel.candidate)
    cases = [
        DocketCase(problem=problem, candidate=candidate)
        for problem in _levels_in_step(list(problems))
        for candidate in (
            *(baseline_candidate(problem, name) for name in baselines),
            *by_problem.get(problem.problem_id, ()),
        )
    ]
    return list({case.key: case for case in reversed(cases)}.values())[::-1]


def _levels_in_step(problems: Sequence[Problem]) -> list[Problem]:
    levels = [problem.level for problem in problems]
    last = max(levels, default=0)
    seen: Counter[int] = Counter()
    places = []
    for level in levels:
        places.append((seen[level] + 0.5) / levels.count(level) * (AHEAD if level == last else 1.0))
        seen[level] += 1
    return [problems[index] for index in sorted(range(len(problems)), key=places.__getitem__)]


def judge_all(
    judge: AnyJudge,
    cases: Sequence[DocketCase],
    docket: Docket,
    *,
    workers: int,
    stop_at: float,
    is_alone: bool,
    name: str = "",
) -> Session:
    """Judge the cases side by side, each answer kept at once.

    A case on which the judge itself fails is tried again after the others.

    Args:
        stop_at: monotonic time from which on nothing new is begun.
        is_alone: whether each has a device to itself, so that running out of memory is its own fault.
        name: of the progress bar, where there are several.

    Raises:
        MachineError: if this machine cannot judge any more.
    """
    waiting = deque((case, 1) for case in cases)
    running: dict[Future[Verdict], tuple[DocketCase, int]] = {}
    session = Session()
    bar = progress(f"{name}judging", total=len(cases), unit="candidate")
    pool = ThreadPoolExecutor(workers, thread_name_prefix="judge")
    try:
        while True:
            while waiting and len(running) < workers and time.monotonic() < stop_at:
                case, attempt = waiting.popleft()
                running[pool.submit(judge.judge, case.problem, case.candidate, seed=SEED)] = (case, attempt)
            if not running:
                return session
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                case, attempt = running.pop(future)
                error = future.exception()
                is_crowded = isinstance(error, FullDeviceError) or (
                    error is None and may_be_about_full_device(future.result().detail)
                )
                if is_crowded and not is_alone:
                    session.crowded.append(case)
                elif error is None:
                    docket.keep(case, future.result())
                    bar.update()
                elif isinstance(error, MachineError) or not isinstance(error, Exception):
                    raise error
                elif attempt < TRIES:
                    waiting.append((case, attempt + 1))
                else:
                    session.failures.append(f"{case.problem.problem_id}, {case.candidate.origin}: {error}"[:500])
    finally:
        bar.close()
        # Not waiting: whoever interrupts us closes the judge next, which ends what is running.
        pool.shutdown(wait=False, cancel_futures=True)


def _identity(answer: Answer) -> tuple[object, ...]:
    verdict = answer.verdict
    return answer.problem_hash, verdict.candidate_id, verdict.device, verdict.protocol, verdict.judged_at


def _answer(row: Mapping[str, Any], path: Path) -> Answer:
    try:
        about = {name: row[name] for name in ("problem_hash", "origin", "is_recalled")}
    except KeyError:
        raise RecordError(f"{path} holds other lines than verdicts of this command; give another --out") from None
    return Answer(**about, verdict=Verdict.from_json(row))
