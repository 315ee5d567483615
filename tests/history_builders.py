"""Builders of made-up records for the history."""

from tasks.history.records import Run, Sample
from tasks.judge.verdict import Check, Status, Timing, Track, Verdict
from tasks.problems.problem import Problem, Split
from tasks.variants.candidate import Candidate

REFERENCE = "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"


def run(run_id="run-1", *, stage="filter_variants", seed=0, params=None, started_at=1.7e9):
    return Run(run_id=run_id, stage=stage, seed=seed, params=params or {}, started_at=started_at)


def problem(problem_id="level1/relu", *, split=Split.TRAIN, source=REFERENCE):
    return Problem(problem_id=problem_id, level=int(problem_id[5]), family="elementwise", split=split, source=source)


def candidate(
    source="class ModelNew: ...\n", *, problem_id="level1/relu", origin="rewrites", recipe=(), parent_id=None
):
    return Candidate(problem_id=problem_id, source=source, origin=origin, recipe=recipe, parent_id=parent_id)


def verdict(of, *, speedup=2.0, status=Status.CORRECT, rounds=9, judged_at=1.7e9, device="a processor", detail=""):
    """A verdict on a candidate; every round shows the speedup, which only correct ones have."""
    timing = Timing(baseline="eager", reference_ms=(speedup,) * rounds, candidate_ms=(1.0,) * rounds)
    return Verdict(
        candidate_id=of.candidate_id,
        problem_id=of.problem_id,
        status=status,
        device=device,
        environment={"torch": "2.13.0"},
        protocol="protocol-1",
        detail=detail,
        checks=(Check(name="fresh_inputs", passed=status is Status.CORRECT, evidence="max error 1e-7"),),
        max_error=0.5,
        timing=timing if status is Status.CORRECT else None,
        track=Track.FRAMEWORK,
        seconds=0.25,
        judged_at=judged_at,
    )


def sample(of, *, step=1, number=0, policy="sft", prompt="# reference\n", exemplar_ids=(), temperature=0.8):
    return Sample(
        problem_id=of.problem_id,
        candidate_id=of.candidate_id,
        prompt=prompt,
        exemplar_ids=exemplar_ids,
        completion=of.source,
        policy=policy,
        temperature=temperature,
        step=step,
        number=number,
    )


def distinct(count, *, problem_id="level1/relu", origin="rewrites", start=0):
    """So many candidates, no two alike."""
    numbers = range(start, start + count)
    return [candidate(f"class ModelNew: ...  # {n}\n", problem_id=problem_id, origin=origin) for n in numbers]
