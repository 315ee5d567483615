"""Verdicts as a table in a Parquet file, and what such a file of an earlier run has to say."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tasks.errors import RecordError
from tasks.judge.timing import LONG
from tasks.judge.verdict import Verdict
from tasks.problems.problem import Problem
from tasks.report.rejudged import Answer


def verdict_rows(problems: Mapping[str, Problem], answers: Iterable[Answer]) -> Iterator[dict[str, Any]]:
    """Every verdict with all of its rounds, baselines included."""
    sets = {problem.problem_hash: problem.problem_set for problem in problems.values()}
    for answer in answers:
        if answer.problem_hash in sets:
            yield {
                "problem_set": sets[answer.problem_hash],
                "problem_hash": answer.problem_hash,
                "origin": answer.origin,
                **_flat(answer.verdict),
            }


def read_records(path: Path) -> list[Answer]:
    """What `verdict_rows` wrote.

    Raises:
        RecordError: if the file cannot be read or holds something else.
    """
    import polars

    try:
        rows = polars.read_parquet(path).rows(named=True)
    except (OSError, polars.exceptions.PolarsError) as error:
        raise RecordError(f"{path} cannot be read as Parquet: {error}") from None
    try:
        return [
            Answer(
                problem_hash=row["problem_hash"],
                origin=row["origin"],
                verdict=_unflattened(row),
                is_recalled=False,
            )
            for row in rows
        ]
    except KeyError as error:
        raise RecordError(f"{path} is no verdicts.parquet of this command: it has no column {error.args[0]}") from None
    except (TypeError, ValueError) as error:
        raise RecordError(f"{path} holds other rows than verdicts.parquet of this command: {error!r}") from None


def _flat(verdict: Verdict) -> dict[str, Any]:
    speedup = verdict.timing.speedup if verdict.timing else None
    row = {name: value for name, value in verdict.to_json().items() if name not in ("environment", "checks", "settled")}
    return {
        **row,
        "speedup": speedup.median if speedup else None,
        "speedup_low": speedup.low if speedup else None,
        "speedup_high": speedup.high if speedup else None,
        "environment": [{"name": name, "value": value} for name, value in verdict.environment.items()],
        "checks": [{"name": c.name, "passed": c.passed, "evidence": c.evidence} for c in verdict.checks],
    }


def _unflattened(row: Mapping[str, Any]) -> Verdict:
    # Of the long tier's rounds only some are kept: there the speedup is more than what these say.
    is_settled = row["speedup"] is not None and row["protocol"].endswith(f"-{LONG}")
    return Verdict.from_json(
        {
            **row,
            "environment": {each["name"]: each["value"] for each in row["environment"]},
            "checks": [[each["name"], each["passed"], each["evidence"]] for each in row["checks"]],
            "settled": [row["speedup"], row["speedup_low"], row["speedup_high"]] if is_settled else None,
        }
    )
