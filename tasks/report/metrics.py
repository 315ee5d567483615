"""The report's numbers for machines: a small nested mapping for DVC metrics and rows for DVC plots."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.report import statistics
from tasks.report.summary import BestKernel, SummaryRow

DIGITS = 4
SHARES_AND_SPEEDS = ("parsed", "ran", "correct", "distinct", "solved", "speedup", "best_speedup", "fast_1", "fast_2")

Row = dict[str, Any]


def flat_metrics(summary: Sequence[SummaryRow], kernels: Sequence[BestKernel]) -> dict[str, Any]:
    """Policy, split, mode, number; and "best_kernels". Rounded, so that a metrics file under git stays readable.

    What is not known is left out: DVC shows a gap for it, but cannot subtract null.
    """
    nested: dict[str, Any] = {"best_kernels": _kernel_metrics(kernels)}
    for row in summary:
        numbers = {name: getattr(row, name) for name in SHARES_AND_SPEEDS}
        numbers |= {f"speedup_over_{name}": speedup for name, speedup in row.over_baselines.items()}
        nested.setdefault(row.policy, {}).setdefault(row.split.value, {})[row.mode] = _rounded(numbers)
    return nested


def summary_rows(summary: Sequence[SummaryRow]) -> list[Row]:
    """One flat row per policy, split and mode."""
    return [
        {
            "policy": row.policy,
            "split": row.split.value,
            "mode": row.mode,
            **_rounded({name: getattr(row, name) for name in SHARES_AND_SPEEDS}),
        }
        for row in summary
    ]


def kernel_rows(kernels: Sequence[BestKernel]) -> list[Row]:
    """The best kernel of every problem; a problem without one has neither track nor speedup."""
    return [
        {
            "problem": kernel.problem.problem_id,
            "split": kernel.problem.split.value,
            **({"track": kernel.verdict.track.value} if kernel.verdict and kernel.verdict.track else {}),
            **_rounded({"speedup": kernel.speedup}),
        }
        for kernel in kernels
    ]


def _kernel_metrics(kernels: Sequence[BestKernel]) -> dict[str, float]:
    speedups = [kernel.speedup for kernel in kernels]
    return {
        "problems": len(speedups),
        **_rounded(
            {
                "geomean_speedup": statistics.geometric_mean(statistics.or_reference(speedups)),
                "max_speedup": statistics.maximum(speedups),
                **{f"fast_{p:g}".replace(".", "_"): statistics.fast_p(speedups, p=p) for p in (0, 1, 1.2, 2)},
            }
        ),
    }


def _rounded(numbers: Mapping[str, float | None]) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in numbers.items() if value is not None}
