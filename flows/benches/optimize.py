"""How much faster does `cuda-l1 optimize` make the built-in problems, held-out ones included, in ten minutes?

    python -m flows.benches.optimize [--minutes 10] [--limit N] [--problems NAME ...] [--device cuda:0] [--afresh]

Every problem goes through the code of the command, without the long tier; what counts is the verdict on the file that
would be written. All problems share the minutes: each has its most promising candidates screened, then those whose next
candidates are hoped to bring most go on; drop-ins and baselines come last. Continues where a run that was ended
stopped. Makes work/bench/optimize-cpu.md, or optimize-cuda.md.
"""

import argparse
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

from flows.benches.optimize_page import render
from flows.benches.optimize_runs import HOPELESS, Run, Shared
from flows.commands.kernelbench import CUDA_LIMITS
from flows.engine import progress
from flows.optimizing.judging import Judges
from tasks.judge.batch import changed
from tasks.params import JudgeParams, load_params
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Problem

FOLDER = Path("work/bench_optimize")
PAGES = Path("work/bench")
MINUTES = 10.0
TIMEOUT_S = 30.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m flows.benches.optimize", description=__doc__)
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
        shared = Shared(judges, params, folder=folder, minutes=minutes, num_problems=len(problems))
        runs = [stack.enter_context(closing(Run(problem, shared))) for problem in problems]
        side_by_side = partial(_side_by_side, pool)
        side_by_side("first candidates", Run.begin, runs)
        _screen_further(runs, shared, pool, workers=workers)
        side_by_side("drop-ins", Run.make_drop_ins, sorted(runs, key=lambda run: -run.screened))
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
                if run is None or run.promise[0] < HOPELESS:
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
