"""What the built-in provider proposes for a problem set, kept for machines that can judge but not write candidates."""

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from flows.engine import progress
from flows.parts.journal import Journal
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate
from tasks.variants.imported import ImportedKernel

PROPOSALS = "proposals.jsonl"
SEED = 0


def proposals(problems: Iterable[Problem], folder: Path, *, device: str, count: int) -> list[ImportedKernel]:
    """At most `count` candidates a problem, the most promising first; those that the folder has are not written again.

    Args:
        device: that they are for, such as "cuda:0".
    """
    kind = device.partition(":")[0]
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(folder / PROPOSALS)
    try:
        known = {row["problem_hash"]: row for row in journal.rows if row["device"] == kind and row["count"] >= count}
        listed = list(problems)
        missing = [problem for problem in listed if problem.problem_hash not in known]
        with progress("proposing", total=len(missing), unit="problem") as bar:
            for problem in missing:
                written = [candidate.to_json() for candidate in _written(problem, device=kind, count=count)]
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


def _written(problem: Problem, *, device: str, count: int) -> Sequence[Candidate]:
    from tasks.variants.recipes import RecipeProvider  # needs libcst, which a machine that only judges need not have

    return list(islice(RecipeProvider(device).candidates(problem, seed=SEED), count))
