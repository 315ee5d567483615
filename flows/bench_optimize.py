"""How much faster does `cuda-l1 optimize` make the built-in problems, held-out ones included, in ten minutes?

    python -m flows.bench_optimize [--minutes 10] [--limit N] [--problems NAME ...] [--device cuda:0] [--afresh]

Every problem goes through the code of the command, without the long tier; what counts is the verdict on the file that
would be written. All problems share the minutes: each has its most promising candidates screened, then those whose next
candidates are hoped to bring most go on; drop-ins and baselines come last. Continues where a run that was ended
stopped. Makes docs/results/optimize-cpu.md, or optimize-cuda.md.
"""

import argparse
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

from flows.bench_optimize_page import render
from flows.engine import progress
from flows.kernelbench import CUDA_LIMITS
from flows.optimize import Optimization
from flows.optimize_document import verdict_document
from flows.optimize_judging import Judges, Record
from flows.optimize_outcome import Settings
from flows.optimize_providers import rewriting
from tasks.errors import ProblemError
from tasks.judge.batch import changed
from tasks.params import JudgeParams, load_params
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Problem
from tasks.search.clock import Clock
from tasks.search.experience import Experience
from tasks.search.search import SCREEN
from tasks.search.survey import survey
from tasks.search.texts import problem_texts
from tasks.search.user_file import read_user_file

FOLDER = Path("work/bench_optimize")
PAGES = Path("docs/results")
MINUTES = 10.0
RESERVE = 0.94
"""Of the time is given out: the last baseline that is begun may take as long as the limit on a candidate allows."""
SCREENING_SHARE = 0.5
"""Of the time that is given out; drop-ins and baselines take the rest."""
FIRST, MORE = 4, 4
"""Candidates of each problem in the first pass, and at a time later on."""
PATIENCE = 12
HOPELESS, HOPEFUL = 0.2, 1.1
"""Of problems with hopes between these those come first that were tried least."""
TIMEOUT_S = 30.0


class Shared:
    """What all problems of a run have in common."""

    def __init__(self, judges: Judges, params: JudgeParams, *, folder: Path, minutes: float) -> None:
        self.judges = judges
        self.folder = folder
        self.clock = Clock()
        self.experience = Experience()
        self.settings = Settings(
            seconds=RESERVE * 60 * minutes,
            screening_share=SCREENING_SHARE,
            window_s=0.0,
            judge=changed(params, workers=1),
            patience=PATIENCE,
            checks_gradients=False,
        )

    @property
    def is_screening_over(self) -> bool:
        return self.clock.elapsed_s > SCREENING_SHARE * self.settings.seconds


class Run:
    """One problem on its way."""

    def __init__(self, problem: Problem, shared: Shared) -> None:
        self.problem = problem
        self.seconds = 0.0
        self.error = ""
        self._shared = shared
        self._optimization: Optimization | None = None
        self._record: Record | None = None

    @property
    def promise(self) -> tuple[float, int]:
        """The larger the sooner: the factor that is hoped for over the best so far, then how little was tried."""
        if self._optimization is None or self.error:
            return 0.0, 0
        hoped, num_tried = self._optimization.promise, len(self._optimization.outcome.progress.at(SCREEN))
        return (1.0 if HOPELESS < hoped < HOPEFUL else hoped), -num_tried

    @property
    def speedup(self) -> float:
        """Of the best drop-in over eager."""
        finals = self._optimization.outcome.finals if self._optimization else []
        return max((each.speedup or 0.0 for _, each in finals), default=0.0)

    def begin(self) -> None:
        self._counted(lambda: self._begun().screen(more=FIRST))

    def go_on(self) -> None:
        self._counted(lambda: self._begun().screen(more=MORE))

    def make_drop_ins(self) -> None:
        self._counted(lambda: self._begun().make_drop_ins())

    def decide(self) -> None:
        self._counted(lambda: self._begun().decide())

    def close(self) -> None:
        if self._record is not None:
            self._record.close()

    def row(self) -> dict[str, Any]:
        """What the page says about it."""
        facts = {"problem_id": self.problem.problem_id, "level": self.problem.level, "split": self.problem.split.value}
        if self._optimization is None or self.error:
            return {**facts, "error": self.error, "seconds": self.seconds}
        outcome = self._optimization.outcome
        document = verdict_document(self._file, outcome)
        verdict = document.pop("verdict")
        document.pop("baselines")
        any_verdict = next((each.verdict for each in outcome.progress.scored), None)
        return {
            **facts,
            **document,
            "seconds": self.seconds,
            "tried": len({each.candidate.candidate_id for each in outcome.progress.scored}),
            "compile": next((each.speedup for each in outcome.baselines), None),
            "best_drop_in": self.speedup or None,
            "track": verdict["track"] if isinstance(verdict, dict) else None,
            "device": any_verdict.device if any_verdict else None,
            "environment": dict(any_verdict.environment) if any_verdict else None,
        }

    def _begun(self) -> Optimization:
        if self._optimization is not None:
            return self._optimization
        shared = self._shared
        self._file = read_user_file(Path("data/problems") / f"{self.problem.problem_id}.py")
        facts = survey(self._file)
        texts = problem_texts(self._file, facts)
        judge, settings = shared.judges.at(SCREEN), shared.settings
        asked = [texts.judged.problem_hash, judge.device, judge.protocol, json.dumps(dict(judge.environment))]
        self._record = Record(shared.folder / self.problem.problem_id, [*asked, str(settings.judge)])
        self._optimization = Optimization(
            self._file,
            facts,
            texts,
            settings=settings,
            judges=shared.judges,
            record=self._record,
            proposers=rewriting(
                texts.shown, seed=settings.seed, device=settings.judge.device, experience=shared.experience
            ),
            clock=shared.clock,
        )
        return self._optimization

    def _counted(self, work: Callable[[], object]) -> None:
        """Do something for the problem, unless that has failed before."""
        if self.error:
            return
        began_at = time.monotonic()
        try:
            work()
        except ProblemError as error:
            self.error = str(error)
        self.seconds += time.monotonic() - began_at


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench_optimize", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--limit", type=int, help="only the first so many problems")
    parser.add_argument("--problems", nargs="+", metavar="NAME", help="only these, such as level1/mish")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:N; each kind has its own page (default: cpu)")
    parser.add_argument("--afresh", action="store_true", help="forget the records of a run before")
    parser.add_argument("--pages", type=Path, default=PAGES, help=f"folder of the page (default: {PAGES})")
    asked = parser.parse_args(arguments)
    kind = asked.device.partition(":")[0]
    if asked.afresh:
        shutil.rmtree(FOLDER / kind, ignore_errors=True)
    known = load_problems(load_params().problems)
    problems = [known[name] for name in asked.problems or known][: asked.limit]
    rows, took_s = _measured(problems, minutes=asked.minutes, device=asked.device, folder=FOLDER / kind)
    (FOLDER / f"rows-{kind}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    page = render(rows, took_s=took_s, minutes=asked.minutes, device=asked.device)
    asked.pages.mkdir(parents=True, exist_ok=True)
    page_path = asked.pages / f"optimize-{kind}.md"
    page_path.write_text(page)
    sys.stdout.write(page.partition("\n## Every")[0] + f"\n{page_path}\n")
    return 0


def _measured(
    problems: Sequence[Problem], *, minutes: float, device: str, folder: Path
) -> tuple[list[dict[str, Any]], float]:
    """A row for each problem, and the seconds that all of them took."""
    workers = min(len(os.sched_getaffinity(0)), len(problems))
    limits = CUDA_LIMITS if device.startswith("cuda") else {"timeout_s": TIMEOUT_S}
    params = changed(JudgeParams(), device=device, workers=workers, **limits)
    with ExitStack() as stack:
        judges = stack.enter_context(Judges(params, window_s=0.0))
        pool = stack.enter_context(ThreadPoolExecutor(workers))
        shared = Shared(judges, params, folder=folder, minutes=minutes)
        runs = [stack.enter_context(closing(Run(problem, shared))) for problem in problems]
        side_by_side = partial(_side_by_side, pool)
        side_by_side("first candidates", Run.begin, runs)
        _screen_further(runs, shared, pool, workers=workers)
        side_by_side("drop-ins", Run.make_drop_ins, runs)
        # A small lead is what a baseline overturns: where time runs out, it was checked at least.
        side_by_side("baselines", Run.decide, sorted(runs, key=lambda run: run.speedup))
        return [run.row() for run in runs], shared.clock.elapsed_s


def _side_by_side(pool: ThreadPoolExecutor, words: str, work: Callable[[Run], None], runs: Iterable[Run]) -> None:
    with progress(words, total=len(list(runs)), unit="problem") as bar:
        for _ in pool.map(work, runs):
            bar.update()


def _screen_further(runs: Sequence[Run], shared: Shared, pool: ThreadPoolExecutor, *, workers: int) -> None:
    """A few candidates at a time for the problem with the best hopes, until the time of screening is over."""
    waiting, lock = list(runs), threading.Lock()

    def work(_number: int) -> None:
        while not shared.is_screening_over:
            with lock:
                run = max(waiting, key=lambda run: run.promise, default=None)
                if run is None or not run.promise[0]:
                    return
                waiting.remove(run)
            run.go_on()
            with lock:
                waiting.append(run)
                bar.update()

    with progress("more candidates", total=0, unit="turn") as bar:
        list(pool.map(work, range(workers)))


if __name__ == "__main__":
    sys.exit(main())
