"""Records as frames, one row each: DuckDB takes a frame in milliseconds where it takes seconds for rows one by one."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import polars

from tasks.history.records import Run, Sample, verdict_id
from tasks.judge.verdict import Verdict
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate

_TEXT = polars.String()
_TEXTS = polars.List(_TEXT)
_REAL = polars.Float64()
_INTEGER = polars.Int64()
_MOMENT = polars.Datetime("us")

_RUN = {
    "run_id": _TEXT,
    "stage": _TEXT,
    "seed": _INTEGER,
    "params": _TEXT,
    "git_commit": _TEXT,
    "versions": _TEXT,
    "started_at": _MOMENT,
}
_PROBLEM = {
    "problem_id": _TEXT,
    "problem_hash": _TEXT,
    "level": _INTEGER,
    "family": _TEXT,
    "split": _TEXT,
    "source": _TEXT,
    "problem_set": _TEXT,
}
_CANDIDATE = {"candidate_id": _TEXT, "problem_id": _TEXT, "origin": _TEXT, "recipe": _TEXTS, "source": _TEXT}
_SAMPLE = {
    "step": _INTEGER,
    "number": _INTEGER,
    "problem_id": _TEXT,
    "candidate_id": _TEXT,
    "prompt_id": _TEXT,
    "exemplar_ids": _TEXTS,
    "prompt": _TEXT,
    "policy": _TEXT,
    "temperature": _REAL,
    "completion": _TEXT,
}
_VERDICT = {
    "verdict_id": _TEXT,
    "candidate_id": _TEXT,
    "problem_id": _TEXT,
    "status": _TEXT,
    "detail": _TEXT,
    "device": _TEXT,
    "environment": _TEXT,
    "protocol": _TEXT,
    "checks": polars.List(polars.Struct({"name": _TEXT, "passed": polars.Boolean(), "evidence": _TEXT})),
    "max_error": _REAL,
    "baseline": _TEXT,
    "reference_ms": polars.List(_REAL),
    "candidate_ms": polars.List(_REAL),
    "speedup": _REAL,
    "speedup_low": _REAL,
    "speedup_high": _REAL,
    "track": _TEXT,
    "seconds": _REAL,
    "judged_at": _MOMENT,
}


def run_frame(run: Run) -> polars.DataFrame:
    row = (
        run.run_id,
        run.stage,
        run.seed,
        _json(run.params),
        run.git_commit,
        _json(run.versions),
        _moment(run.started_at),
    )
    return _frame([row], _RUN)


def problem_frame(problems: Iterable[Problem]) -> polars.DataFrame:
    rows = [
        (
            problem.problem_id,
            problem.problem_hash,
            problem.level,
            problem.family,
            problem.split.value,
            problem.source,
            problem.problem_set,
        )
        for problem in problems
    ]
    return _frame(rows, _PROBLEM)


def candidate_frame(candidates: Iterable[Candidate]) -> polars.DataFrame:
    rows = [
        (candidate.candidate_id, candidate.problem_id, candidate.origin, list(candidate.recipe), candidate.source)
        for candidate in candidates
    ]
    return _frame(rows, _CANDIDATE)


def sample_frame(samples: Iterable[Sample]) -> polars.DataFrame:
    rows = [
        (
            sample.step,
            sample.number,
            sample.problem_id,
            sample.candidate_id,
            sample.prompt_id,
            list(sample.exemplar_ids),
            sample.prompt,
            sample.policy,
            sample.temperature,
            sample.completion,
        )
        for sample in samples
    ]
    return _frame(rows, _SAMPLE)


def verdict_frame(verdicts: Iterable[Verdict]) -> polars.DataFrame:
    return _frame([_verdict_row(verdict) for verdict in verdicts], _VERDICT)


def _verdict_row(verdict: Verdict) -> tuple[object, ...]:
    timing = verdict.timing
    speedup = timing.speedup if timing else None
    return (
        verdict_id(verdict),
        verdict.candidate_id,
        verdict.problem_id,
        verdict.status.value,
        _storable(verdict.detail),
        verdict.device,
        _json(verdict.environment),
        verdict.protocol,
        [
            {"name": check.name, "passed": check.passed, "evidence": _storable(check.evidence)}
            for check in verdict.checks
        ],
        verdict.max_error,
        timing.baseline if timing else None,
        list(timing.reference_ms) if timing else None,
        list(timing.candidate_ms) if timing else None,
        speedup.median if speedup else None,
        speedup.low if speedup else None,
        speedup.high if speedup else None,
        verdict.track.value if verdict.track else None,
        verdict.seconds,
        _moment(verdict.judged_at),
    )


def _frame(rows: list[Any], schema: dict[str, Any]) -> polars.DataFrame:
    return polars.DataFrame(rows, schema=schema, orient="row")


def _json(value: Mapping[str, Any]) -> str:
    # Sorted, so that equal mappings are equal texts and a contradiction is one.
    return json.dumps(dict(value), sort_keys=True)


def _moment(unix_s: float) -> datetime:
    """The moment in UTC, without saying so: DuckDB's TIMESTAMP has no zone."""
    return datetime.fromtimestamp(unix_s, UTC).replace(tzinfo=None)


def _storable(text: str) -> str:
    """A candidate decides what its error says, lone surrogates included, which no UTF-8 column takes."""
    return text.encode("utf-8", "replace").decode()
