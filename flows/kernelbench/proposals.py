"""What the built-in provider proposes for a problem set, kept for machines that can judge but not write candidates."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from flows.engine import progress
from flows.parts.journal import Journal
from tasks.errors import MachineError
from tasks.problems.problem import Problem
from tasks.safe_path import outside_of_this_folder
from tasks.variants.candidate import Candidate
from tasks.variants.imported import ImportedKernel

PROPOSALS = "proposals.jsonl"
SEED = 0
MOST_PROCESSES = 16


def proposals(problems: Iterable[Problem], folder: Path, *, device: str, count: int) -> list[ImportedKernel]:
    """At most `count` candidates a problem, the most promising first; those that the folder has are not written again.

    Args:
        device: that they are for, such as "cuda:0".

    Raises:
        MachineError: if a process that writes some is ended by somebody else.
    """
    kind = device.partition(":")[0]
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(folder / PROPOSALS)
    try:
        known = {row["problem_hash"]: row for row in journal.rows if row["device"] == kind and row["count"] >= count}
        listed = list(problems)
        missing = [problem for problem in listed if problem.problem_hash not in known]
        with progress("proposing", total=len(missing), unit="problem") as bar:
            for problem, written in _all_written(missing, device=kind, count=count):
                row = {"problem_hash": problem.problem_hash, "device": kind, "count": count, "candidates": written}
                journal.append([row])
                known[problem.problem_hash] = row
                bar.update()
    finally:
        journal.close()
    candidates = (
        Candidate.from_json({**row, "problem_id": problem.problem_id})
        for problem in listed
        for row in known[problem.problem_hash]["candidates"][:count]
    )
    return [ImportedKernel(problem_id=each.problem_id, origin=each.origin, candidate=each) for each in candidates]


def _all_written(
    problems: Sequence[Problem], *, device: str, count: int
) -> Iterator[tuple[Problem, list[dict[str, Any]]]]:
    """Each problem with its candidates, as they are done; by several processes, since that takes half a second each."""
    num_processes = min(len(os.sched_getaffinity(0)), len(problems), MOST_PROCESSES)
    if num_processes < 2:
        yield from ((problem, _written(problem, device, count)) for problem in problems)
        return
    context = multiprocessing.get_context("forkserver")
    pool = ProcessPoolExecutor(num_processes, mp_context=context, initializer=_begin_process)
    try:
        with outside_of_this_folder():
            waiting = {pool.submit(_written, problem, device, count): problem for problem in problems}
        for done in as_completed(waiting):
            yield waiting[done], done.result()
    except BrokenProcessPool as error:
        raise MachineError(f"a process that writes candidates has gone: {error}; is memory short?") from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _begin_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who presses Ctrl-C hears of it from our parent
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait for the end of the process that asked for candidates: to the kernel our parent is the fork server."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "this is a process of a pool"
    wait([parent.sentinel])
    os._exit(1)


def _written(problem: Problem, device: str, count: int) -> list[dict[str, Any]]:
    from tasks.variants.recipes import RecipeProvider  # needs libcst, which a machine that only judges need not have

    return [each.to_json() for each in islice(RecipeProvider(device).candidates(problem, seed=SEED), count)]
