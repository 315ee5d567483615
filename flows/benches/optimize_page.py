"""The page of what `cuda-l1 optimize` makes of the built-in problems, from a row for each."""

import math
import os
import statistics
from collections.abc import Sequence
from typing import Any

from tasks.judge.timing import protocol_of
from tasks.problems.problem import Split

NOTABLE = 1.2
_EXPLANATION = """All speedups are of files as they would be written, their guards included. "Best drop-in" is the
fastest one that is right, whether or not it beats `torch.compile`, and 1.0x where none is faster than eager. It is
judged only where a drop-in is faster than eager for sure; its column is of those problems. "Written" counts 1.0x where
the command writes nothing, because nothing was found whose interval lies above that of the faster one of eager and
`torch.compile`. "Unchecked" are files written although there was no verdict on `compile`, mostly for lack of time.
Geometric means; intervals of 90 %."""
_SUMMARY_HEAD = (
    "| problems | number | best drop-in over eager | `compile` over eager | written over eager "
    "| written over the best baseline | files written | unchecked | best drop-in above 1.2x |",
    "|---|---|---|---|---|---|---|---|---|",
)
_TABLE_HEAD = (
    "| problem | split | best drop-in | written over eager | over the best baseline | best baseline | by | tried | s |",
    "|---|---|---|---|---|---|---|---|---|",
)


def render(rows: Sequence[dict[str, Any]], *, took_s: float, minutes: float, device: str) -> str:
    """The page of results."""
    judged = [row for row in rows if row.get("device")]
    model, torch = (judged[0]["device"], judged[0]["environment"]["torch"]) if judged else ("no device", "none")
    cores = len(os.sched_getaffinity(0))
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
                f"`{protocol_of(device=device, tier='screen')}`, by `make bench-optimize`.",
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
    compiled = [row["compile"] for row in rows if row.get("compile")]
    geomeans = [
        f"{_geomean(drop_ins):.2f}x",
        f"{_geomean(compiled):.2f}x of {len(compiled)}" if compiled else "-",
        f"{_geomean(written):.2f}x",
        f"{_geomean(over_best):.2f}x",
    ]
    counts = [
        sum(bool(row.get("faster")) for row in rows),
        sum(_is_unchecked(row) for row in rows),
        sum(speedup > NOTABLE for speedup in drop_ins),
    ]
    return f"| {' | '.join(map(str, [name, len(rows), *geomeans, *counts]))} |"


def _is_unchecked(row: dict[str, Any]) -> bool:
    return bool(row.get("faster") and row.get("baselines_not_judged"))


def _line(row: dict[str, Any]) -> str:
    by = ", ".join(row.get("recipe") or []) or row.get("error", "")[:80].replace("\n", " ")
    best = row.get("best_drop_in")
    baseline = row.get("best_baseline", "") + (", `compile` unchecked" if _is_unchecked(row) else "")
    return (
        f"| {row['problem_id']} | {row['split']} | {f'{best:.2f}x' if best else '-'} "
        f"| {_words(row.get('speedup_over_eager'))} | {_words(row.get('speedup_over_best_baseline'))} "
        f"| {baseline} | {by} | {row.get('tried', 0)} | {row['seconds']:.0f} |"
    )


def _median(row: dict[str, Any], name: str) -> float:
    return float((row.get(name) or {"median": 1.0})["median"])


def _geomean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def _words(speedup: dict[str, float] | None) -> str:
    return f"{speedup['median']:.2f}x ({speedup['low']:.2f} to {speedup['high']:.2f})" if speedup else "-"
