"""How much faster does `cuda-l1 optimize` make the built-in problems, held-out ones included, in ten minutes?

    python -m flows.bench_optimize [--minutes 10] [--limit N] [--device cuda:0] [--afresh]

Every problem goes through the code of the command, without the long tier; what counts is the verdict on the file that
would be written. Continues where a run that was ended stopped. Makes docs/results/optimize-cpu.md, or
optimize-cuda.md, from its records.
"""

import argparse
import math
import os
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.engine import progress
from flows.journal import Journal
from flows.kernelbench import CUDA_LIMITS
from flows.optimize import Optimization, Settings
from flows.optimize_document import verdict_document
from flows.optimize_judging import Judges, Record
from flows.optimize_providers import rewriting
from tasks.errors import ProblemError
from tasks.judge.batch import changed
from tasks.judge.timing import PROTOCOL
from tasks.params import JudgeParams, load_params
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Problem, Split
from tasks.search.survey import survey
from tasks.search.texts import problem_texts
from tasks.search.user_file import read_user_file

FOLDER = Path("work/bench_optimize")
PAGES = Path("docs/results")
MINUTES = 10.0
RESERVE = 0.95
"""Of the time is given out: the last judgement of a problem may take longer than is left."""
PATIENCE = 16
TIMEOUT_S = 30.0
NOTABLE = 1.2
_EXPLANATION = """All speedups are of files as they would be written, their guards included. "Best drop-in" is the
fastest one that is right, whether or not it beats `torch.compile`, and 1.0x where none is faster than eager. "Written"
counts 1.0x where the command writes nothing, because nothing was found whose interval lies above that of the faster one
of eager and `torch.compile`. Geometric means; intervals of 90 %."""
_SUMMARY_HEAD = (
    "| problems | number | best drop-in over eager | `compile` over eager | written over eager "
    "| written over the best baseline | files written | best drop-in above 1.2x |",
    "|---|---|---|---|---|---|---|---|",
)
_TABLE_HEAD = (
    "| problem | split | best drop-in | written over eager | over the best baseline | best baseline | by | tried | s |",
    "|---|---|---|---|---|---|---|---|---|",
)


@dataclass(kw_only=True, slots=True)
class Clock:
    """Shares the time that is left evenly among the problems that are left."""

    deadline: float
    problems_left: int
    at_once: int

    def share_s(self) -> float:
        left_s = max(self.deadline - time.monotonic(), 1.0)
        share_s = left_s * self.at_once / max(self.problems_left, self.at_once)
        self.problems_left -= 1
        return share_s


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench_optimize", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--limit", type=int, help="only the first so many problems")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:N; each kind has its own page (default: cpu)")
    parser.add_argument("--afresh", action="store_true", help="forget the records of a run before")
    asked = parser.parse_args(arguments)
    kind = asked.device.partition(":")[0]
    records_path, page_path = FOLDER / f"records-{kind}.jsonl", PAGES / f"optimize-{kind}.md"
    if asked.afresh:
        records_path.unlink(missing_ok=True)
    problems = list(load_problems(load_params().problems).values())[: asked.limit]
    records = Journal(records_path)
    try:
        rows = _measured(problems, records, minutes=asked.minutes, device=asked.device)
    finally:
        records.close()
    page = render(rows, minutes=asked.minutes, device=asked.device)
    page_path.write_text(page)
    sys.stdout.write(page.partition("\n## Every")[0] + f"\n{page_path}\n")
    return 0


def _measured(problems: Sequence[Problem], records: Journal, *, minutes: float, device: str) -> list[dict[str, Any]]:
    """A row for each problem; those that the records have are not measured again."""
    known = {row["problem_id"]: row for row in records.rows}
    todo = [problem for problem in problems if problem.problem_id not in known]
    spent_s = max((row["at_s"] for row in records.rows), default=0.0)
    workers = min(len(os.sched_getaffinity(0)), max(len(todo), 1))
    began_at = time.monotonic() - spent_s
    clock = Clock(deadline=began_at + RESERVE * 60 * minutes, problems_left=len(todo), at_once=workers)
    limits = CUDA_LIMITS if device.startswith("cuda") else {"timeout_s": TIMEOUT_S}
    params = changed(JudgeParams(), device=device, workers=workers, **limits)
    lock = threading.Lock()

    def measure(problem: Problem) -> None:
        with lock:
            seconds = clock.share_s()
        row = _optimized(problem, judges, params, seconds=seconds)
        with lock:
            row["at_s"] = time.monotonic() - began_at
            known[problem.problem_id] = row
            records.append([row])
            bar.update()

    with Judges(params, window_s=0.0) as judges, ThreadPoolExecutor(workers) as pool:
        bar = progress("optimizing", total=len(todo), unit="problem")
        list(pool.map(measure, todo))
        bar.close()
    return [known[problem.problem_id] for problem in problems]


def _optimized(problem: Problem, judges: Judges, params: JudgeParams, *, seconds: float) -> dict[str, Any]:
    began_at = time.monotonic()
    facts_of = {"problem_id": problem.problem_id, "level": problem.level, "split": problem.split.value}
    try:
        file = read_user_file(Path("data/problems") / f"{problem.problem_id}.py")
        facts = survey(file)
        texts = problem_texts(file, facts)
        settings = Settings(
            seconds=seconds,
            window_s=0.0,
            judge=changed(params, workers=1),
            patience=PATIENCE,
            checks_gradients=False,
        )
        record = Record(None, [])
        proposers = rewriting(texts.shown, seed=settings.seed, device=params.device)
        optimization = Optimization(
            file, facts, texts, settings=settings, judges=judges, record=record, proposers=proposers
        )
        outcome = optimization.run()
    except ProblemError as error:
        return {**facts_of, "error": str(error), "seconds": time.monotonic() - began_at}
    document = verdict_document(file, outcome)
    verdict = document.pop("verdict")
    document.pop("baselines")
    return {
        **facts_of,
        **document,
        "tried": len({each.candidate.candidate_id for each in outcome.progress.scored}),
        "compile": next((each.speedup for each in outcome.baselines), None),
        "best_drop_in": max((each.speedup or 0.0 for _, each in outcome.finals), default=None),
        "track": verdict["track"] if isinstance(verdict, dict) else None,
        "device": next(each.verdict.device for each in outcome.baselines),
        "environment": dict(next(each.verdict.environment for each in outcome.baselines)),
    }


def render(rows: Sequence[dict[str, Any]], *, minutes: float, device: str) -> str:
    """The page of results."""
    judged = [row for row in rows if row.get("device")]
    model, torch = (judged[0]["device"], judged[0]["environment"]["torch"]) if judged else ("no device", "none")
    took_s, cores = max(row["at_s"] for row in rows), len(os.sched_getaffinity(0))
    groups = {
        "all": rows,
        **{f"level {level}": [row for row in rows if row["level"] == level] for level in (1, 2, 3)},
        **{split.value: [row for row in rows if row["split"] == split.value] for split in Split},
    }
    return (
        "\n\n".join(
            [
                f"# `cuda-l1 optimize` on {'a GPU' if device.startswith('cuda') else 'the CPU'}",
                f"{len(rows)} built-in problems, {took_s / 60:.1f} minutes for all of them (asked for: {minutes:g}), "
                f"built-in rewrites only, {cores} cores, one thread a program, {model}, torch {torch}, protocol "
                f"`{PROTOCOL}`, by `make bench-optimize`.",
                _EXPLANATION,
                "\n".join([*_SUMMARY_HEAD, *(_summary(name, group) for name, group in groups.items() if group)]),
                "## Every problem",
                "\n".join([*_TABLE_HEAD, *map(_line, rows)]),
            ]
        )
        + "\n"
    )


def _summary(name: str, rows: Sequence[dict[str, Any]]) -> str:
    drop_ins = [max(row.get("best_drop_in") or 1.0, 1.0) for row in rows]
    written = [_median(row, "speedup_over_eager") for row in rows]
    over_best = [_median(row, "speedup_over_best_baseline") for row in rows]
    compiled = [row.get("compile") or 1.0 for row in rows]
    num_written = sum(bool(row.get("faster")) for row in rows)
    num_above = sum(speedup > NOTABLE for speedup in drop_ins)
    geomeans = " | ".join(f"{_geomean(speedups):.2f}x" for speedups in (drop_ins, compiled, written, over_best))
    return f"| {name} | {len(rows)} | {geomeans} | {num_written} | {num_above} |"


def _line(row: dict[str, Any]) -> str:
    by = ", ".join(row.get("recipe") or []) or row.get("error", "")[:80].replace("\n", " ")
    best = row.get("best_drop_in")
    return (
        f"| {row['problem_id']} | {row['split']} | {f'{best:.2f}x' if best else '-'} "
        f"| {_words(row.get('speedup_over_eager'))} | {_words(row.get('speedup_over_best_baseline'))} "
        f"| {row.get('best_baseline', '')} | {by} | {row.get('tried', 0)} | {row['seconds']:.0f} |"
    )


def _median(row: dict[str, Any], name: str) -> float:
    return float((row.get(name) or {"median": 1.0})["median"])


def _geomean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def _words(speedup: dict[str, float] | None) -> str:
    return f"{speedup['median']:.2f}x ({speedup['low']:.2f} to {speedup['high']:.2f})" if speedup else "-"


if __name__ == "__main__":
    sys.exit(main())
