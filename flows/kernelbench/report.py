"""Files that tell what judging a benchmark came to: Markdown, a page, and Parquet for whoever computes further."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from flows.kernelbench.records import verdict_rows
from tasks.problems.problem import Problem
from tasks.report.baselines import best_baseline, over
from tasks.report.page import render_tables
from tasks.report.rejudged import Answer, DeviceResult, device_results
from tasks.report.rejudged_tables import device_table, device_tables, same_kernels_table
from tasks.report.tables import to_markdown
from tasks.variants.imported import ImportedKernel


def write_report(
    folder: Path,
    problems: Mapping[str, Problem],
    kernels: Sequence[ImportedKernel],
    answers: Sequence[Answer],
) -> list[Path]:
    """Write report.md, report.html, kernels.parquet and verdicts.parquet; returns their paths."""
    import polars

    asked = {problem.problem_hash for problem in problems.values()}
    results = device_results(problems, kernels, [answer for answer in answers if answer.problem_hash in asked])
    sets = ", ".join(sorted({problem.problem_set for problem in problems.values()}))
    title = f"Kernels rejudged: {sets}"
    sections = {
        f"{result.label}, protocol {result.protocol}": [table for table in device_tables(result) if table.rows]
        for result in results
    }
    if len(results) > 1:
        sections = {"All devices": [device_table(results), same_kernels_table(results)], **sections}
    lines = [f"# {title}", "", f"{len(problems)} problems. Every speedup is the reference's time / the kernel's.", ""]
    for heading, tables in sections.items():
        lines += [f"## {heading}", "", *map(to_markdown, tables)]
    paths = [folder / name for name in ("report.md", "report.html", "kernels.parquet", "verdicts.parquet")]
    paths[0].write_text("\n".join(lines))
    paths[1].write_text(render_tables(title, sections))
    polars.DataFrame(list(_kernel_rows(results)), infer_schema_length=None).write_parquet(paths[2])
    polars.DataFrame(list(verdict_rows(problems, answers)), infer_schema_length=None).write_parquet(paths[3])
    return paths


def _kernel_rows(results: Iterable[DeviceResult]) -> Iterator[dict[str, Any]]:
    """One row per imported kernel and device."""
    for result in results:
        for rejudged in result.rejudged.values():
            for one in rejudged:
                timing = one.verdict.timing if one.verdict else None
                name, best = best_baseline(result.baselines, one.problem.problem_id)
                versus = over(timing.speedup, best) if timing else None
                yield {
                    "problem_set": one.problem.problem_set,
                    "problem_id": one.problem.problem_id,
                    "level": one.problem.level,
                    "origin": one.kernel.origin,
                    "candidate_id": one.kernel.candidate.candidate_id if one.kernel.candidate else None,
                    "claimed_device": one.kernel.device or None,
                    "claimed_speedup": one.kernel.claims.get("eager"),
                    "device": result.device,
                    "protocol": result.protocol,
                    "torch": result.torch,
                    "fate": one.fate,
                    "status": one.verdict.status.value if one.verdict else None,
                    "track": one.verdict.track.value if one.verdict and one.verdict.track else None,
                    "reason": one.reason or None,
                    "speedup": timing.speedup.median if timing else None,
                    "speedup_low": timing.speedup.low if timing else None,
                    "speedup_high": timing.speedup.high if timing else None,
                    "best_baseline": name,
                    "speedup_over_best": versus.median if versus else None,
                    "speedup_over_best_low": versus.low if versus else None,
                    "speedup_over_best_high": versus.high if versus else None,
                }
