"""Judging many candidates for a stage: side by side, each text once, journalled, and kept in the history."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace

from flows.engine import Stage, progress, say
from flows.panels.judges import open_judge
from flows.parts.journal import Journal
from flows.parts.recording import Recorder
from flows.parts.runs import run_of
from tasks.errors import MachineError, RetryableError
from tasks.history.known import same_versions
from tasks.history.records import Sample
from tasks.judge.any_judge import AnyJudge
from tasks.judge.verdict import Status, Verdict
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate

TRIES = 6
RETRY_DELAY_S = 2.0
"""Before the second try; it doubles with each. Six tries give a judge that restarts a minute."""
HISTORY_BATCH = 64


class Court:
    """Judges for one run of a stage. A text that already has a verdict is not judged again.

    Every verdict is in the journal before it is returned, so that a killed stage judges nothing twice; the history gets
    them in batches, and again from the journal when a killed stage resumes, which adds nothing that is there already.
    """

    def __init__(
        self,
        stage: Stage,
        judge: AnyJudge,
        problems: Mapping[str, Problem],
        *,
        known: Iterable[Verdict],
        journal: str,
        workers: int,
    ) -> None:
        self._stage = stage
        self._judge = judge
        self._problems = problems
        self.workers = workers
        """Candidates judged at once."""
        self._journal = Journal(stage.folder / journal)
        self._record = Recorder(run_of(stage), problems)
        own = [Verdict.from_json(row) for row in self._journal.rows]
        # What another machine, another torch or an older protocol said is history, not an answer.
        comparable = [verdict for verdict in [*known, *own] if self.is_comparable(verdict)]
        self._known = {verdict.candidate_id: verdict for verdict in comparable}
        self._closing = threading.Event()
        self._best: dict[str, float] = {}
        for verdict in comparable:
            self._note_best(verdict)
        self.own: dict[str, Verdict] = {verdict.candidate_id: verdict for verdict in own}
        """Verdicts of this run, in the order they were reached."""
        self.has_moved = not all(map(self.is_comparable, own))
        """Whether this run has reached verdicts elsewhere, or by another protocol or version: they are not answers."""

    def judge(self, candidates: Sequence[Candidate], *, desc: str | None = None) -> list[Verdict]:
        """A verdict for each candidate, in the order given; with a progress bar when there is a description.

        Where one cannot be judged, those that are being judged by then are kept before its error is raised.
        """
        # Problem by problem: what is known of a reference is kept for the last few only.
        places = {problem_id: place for place, problem_id in enumerate(dict.fromkeys(c.problem_id for c in candidates))}
        by_problem = sorted(candidates, key=lambda candidate: places[candidate.problem_id])
        todo = {c.candidate_id: c for c in by_problem if c.candidate_id not in self._known}
        reused = {c.candidate_id: self._known[c.candidate_id] for c in candidates if c.candidate_id not in todo}
        bar = progress(desc, total=len(todo), unit="candidate") if desc and todo else None
        fresh: list[Verdict] = []

        def keep(verdict: Verdict) -> None:
            self._journal.append([verdict.to_json()])
            self._known[verdict.candidate_id] = self.own[verdict.candidate_id] = verdict
            self._note_best(verdict)
            if verdict.status is Status.CHEATED:
                self._record.hack(todo[verdict.candidate_id], verdict)
            fresh.append(verdict)
            if len(fresh) >= HISTORY_BATCH:
                self._record.verdicts(fresh)
                fresh.clear()

        # The history is told of the candidates first: a verdict must never stand there without its text.
        self._record.candidates(candidates)
        self._record.verdicts(list(reused.values()))
        with ThreadPoolExecutor(max_workers=self.workers) as pool:
            futures = [pool.submit(self._judge_patiently, candidate) for candidate in todo.values()]
            try:
                for future in as_completed(futures):
                    keep(future.result())
                    if bar is not None:
                        bar.update()
            except BaseException:
                for future in futures:
                    future.cancel()
                # The pool ends when those that are being judged are done, so that keeping them takes no longer.
                for future in as_completed(futures):
                    if not future.cancelled() and future.exception() is None:
                        verdict = future.result()
                        if verdict.candidate_id not in self._known:
                            keep(verdict)
                raise
            finally:
                self._record.verdicts(fresh)
        if bar is not None:
            bar.close()
        return [self._known[candidate.candidate_id] for candidate in candidates]

    def is_comparable(self, verdict: Verdict) -> bool:
        """Whether this court would have said it too: on such a device, by its protocol and with the same versions."""
        ours = self._judge
        is_alike = (verdict.device, verdict.protocol) == (ours.device, ours.protocol)
        return is_alike and same_versions(verdict.environment, ours.environment)

    def recover(self, candidates: Iterable[Candidate]) -> None:
        """Give the history what a killed run had journalled but not stored."""
        journalled = [candidate for candidate in candidates if candidate.candidate_id in self.own]
        self._record.candidates(journalled)
        self._record.verdicts([self.own[candidate.candidate_id] for candidate in journalled])

    def record_samples(self, samples: Sequence[Sample]) -> None:
        """Keep what a policy wrote, and the prompts it answered, in the history."""
        self._record.samples(samples)

    def close(self) -> None:
        """Let go of the journal, after a last try to tell a busy history what it has missed.

        What another thread is having judged by then is given up.
        """
        self._closing.set()
        self._record.close()
        self._journal.close()

    def _note_best(self, verdict: Verdict) -> None:
        if verdict.speedup is not None:
            self._best[verdict.problem_id] = max(verdict.speedup, self._best.get(verdict.problem_id, 0.0))

    def _judge_patiently(self, candidate: Candidate) -> Verdict:
        for attempt in range(TRIES):
            if self._closing.is_set():
                raise MachineError("the judge was closed")
            try:
                return self._judge.judge(
                    self._problems[candidate.problem_id],
                    candidate,
                    seed=self._stage.params.seed,
                    best_speedup=self._best.get(candidate.problem_id),
                )
            except RetryableError as error:
                if attempt == TRIES - 1 or self._closing.is_set():
                    raise
                say(f"judging {candidate.candidate_id} failed, trying again: {error}")
                self._closing.wait(RETRY_DELAY_S * 2**attempt)
        raise AssertionError("unreachable: the last try returns or raises")


@contextmanager
def court(
    stage: Stage,
    problems: Mapping[str, Problem],
    *,
    known: Iterable[Verdict] = (),
    journal: str = "verdicts.jsonl",
    workers: int | None = None,
) -> Iterator[Court]:
    """A court with judges of its own, closed at the end whatever happens.

    Args:
        known: verdicts of earlier stages; their texts are not judged again.
        journal: file in the stage's working folder; a court that judges known texts afresh needs one of its own.
        workers: candidates judged side by side on each device, where it is not judge.workers: 1 for timings nobody
            disturbs.
    """
    params = stage.params.judge if workers is None else replace(stage.params.judge, workers=workers)  # type: ignore[type-var]
    with open_judge(params) as judge:
        seat = Court(stage, judge, problems, known=known, journal=journal, workers=judge.workers)
        try:
            yield seat
        finally:
            seat.close()
