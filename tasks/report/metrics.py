"""The report's numbers for machines: a small nested mapping for DVC metrics and rows for DVC plots."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.report import statistics
from tasks.report.statistics import Interval
from tasks.report.summary import BestKernel, Gain, SummaryRow

DIGITS = 4
SHARES_AND_SPEEDS = (
    *("parsed", "ran", "correct", "distinct", "copied", "solved"),
    *("speedup", "best_speedup", "fast_1", "fast_2"),
)

Row = dict[str, Any]


def flat_metrics(summary: Sequence[SummaryRow], kernels: Sequence[BestKernel], gains: Sequence[Gain]) -> dict[str, Any]:
    """Policy, split, mode, number; and "best_kernels". Rounded, so that a metrics file under git stays readable.

    "gain" under a policy, split and mode is what it has over the policy before it.
    What is not known is left out: DVC shows a gap for it, but cannot subtract null.
    """
    nested: dict[str, Any] = {"best_kernels": _kernel_metrics(kernels)}
    for row in summary:
        over = {f"speedup_over_{name}": speedup for name, speedup in row.over_baselines.items()}
        nested.setdefault(row.policy, {}).setdefault(row.split.value, {})[row.mode] = _rounded(_numbers(row) | over)
    for gain in gains:
        if gain.ratio is not None:
            numbers = _rounded({"ratio": gain.ratio, **_bounds("", gain.interval)})
            nested[gain.later][gain.split.value][gain.mode]["gain"] = numbers
    return nested


def tracked_metrics(tree: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """The same numbers as MLflow names them, such as sft/train/sampled/correct."""
    flat: dict[str, float] = {}
    for name, value in tree.items():
        flat |= tracked_metrics(value, f"{prefix}{name}/") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def summary_rows(summary: Sequence[SummaryRow]) -> list[Row]:
    """One flat row per policy, split and mode."""
    return [
        {
            "policy": row.policy,
            "split": row.split.value,
            "mode": row.mode,
            **_rounded(_numbers(row)),
        }
        for row in summary
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


def _numbers(row: SummaryRow) -> dict[str, float | None]:
    return {
        **{name: getattr(row, name) for name in SHARES_AND_SPEEDS},
        **_bounds("correct_", row.correct_interval),
        **_bounds("speedup_", row.speedup_interval),
    }


def _bounds(prefix: str, interval: Interval | None) -> dict[str, float]:
    return {f"{prefix}low": interval.low, f"{prefix}high": interval.high} if interval else {}


def _rounded(numbers: Mapping[str, float | None]) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in numbers.items() if value is not None}
