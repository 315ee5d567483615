"""What CUDA-L1's authors report, to stand beside what was judged here.

From the tables of its README of 2025-08-11; the quartiles of GPUs other than the A100 are those of its released files.
A mean counts a problem without a kernel as 1.0x, but over CUDA graphs leaves out the problems that have no graph.
"""

from collections.abc import Iterator
from dataclasses import dataclass

PROBLEM_SET = "kernelbench-v0"
"""The problems that its numbers are of; beside others they would say nothing."""
PAID_ABOVE = 1.01
"""From here on the paper calls a kernel faster."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperRow:
    """One row of the paper's tables; None where it does not say."""

    gpu: str
    baseline: str
    group: str
    mean: float
    problems: int
    quartiles: tuple[float, float, float] | None = None
    """First, median, third."""
    maximum: float | None = None
    faster: int | None = None
    """Problems with a speedup above PAID_ABOVE."""


def paper_rows(gpu: str) -> list[PaperRow]:
    """All that the paper says about a GPU; nothing about one that it does not name.

    >>> [row.mean for row in paper_rows("h100") if row.group == "all"]
    [3.85, 2.74, 2.77, 2.23]
    """
    return [row for row in _all_rows() if row.gpu == gpu.upper()]


_SIZES = {"all": 250, "level 1": 100, "level 2": 100, "level 3": 50}
_BASELINES = ("eager", "compile", "compile_reduce_overhead", "cuda_graph")

# By GPU, the mean over each of _BASELINES, the means by level, maximum, quartiles and problems paid over eager.
_BY_GPU = {
    "H100": ((3.85, 2.74, 2.77, 2.23), (1.85, 6.41, 2.74), 368.0, (1.09, 1.32, 1.76), 218),
    "L40": ((3.13, 2.85, 2.89, 3.98), (2.52, 4.01, 2.58), 182.0, (1.08, 1.31, 1.88), 215),
    "3090": ((2.51, 2.58, 2.61, 3.34), (2.20, 2.98, 2.20), 114.0, (1.03, 1.18, 1.57), 201),
    "H20": ((2.38, 2.89, 2.82, 2.20), (2.10, 2.67, 2.37), 63.7, (1.11, 1.34, 1.81), 226),
}
# Mean, maximum, quartiles, problems paid and problems counted, in the order of _SIZES.
_A100 = {
    "eager": (
        (3.12, 120.0, (1.17, 1.42, 2.25), 226, 250),
        (2.78, 65.8, (1.12, 1.28, 1.75), 80, 100),
        (3.55, 120.0, (1.20, 1.39, 2.05), 98, 100),
        (2.96, 24.9, (1.42, 1.94, 2.60), 48, 50),
    ),
    "compile": (
        (2.77, 69.0, (1.14, 1.72, 2.55), 203, 250),
        (3.04, 59.7, (1.41, 1.99, 2.71), 89, 100),
        (2.91, 69.0, (1.10, 1.55, 1.99), 78, 100),
        (1.98, 8.57, (1.00, 1.68, 2.28), 36, 50),
    ),
    "compile_reduce_overhead": (
        (2.88, 80.1, (1.13, 1.67, 2.48), 200, 250),
        (3.38, 55.3, (1.61, 2.29, 3.02), 90, 100),
        (3.00, 80.1, (1.10, 1.54, 2.06), 79, 100),
        (1.62, 8.67, (0.991, 1.13, 1.76), 31, 50),
    ),
    "cuda_graph": (
        (2.81, 97.9, (0.954, 1.20, 1.83), 147, 229),
        (3.18, 59.6, (1.04, 1.38, 2.09), 68, 88),
        (2.84, 97.9, (0.932, 1.08, 1.55), 53, 94),
        (2.06, 24.6, (0.887, 1.08, 1.74), 26, 47),
    ),
}


def _all_rows() -> Iterator[PaperRow]:
    for baseline, rows in _A100.items():
        for group, (mean, maximum, quartiles, faster, problems) in zip(_SIZES, rows, strict=True):
            yield PaperRow(
                gpu="A100",
                baseline=baseline,
                group=group,
                mean=mean,
                problems=problems,
                quartiles=quartiles,
                maximum=maximum,
                faster=faster,
            )
    for gpu, (over_baselines, by_level, maximum, quartiles, faster) in _BY_GPU.items():
        yield PaperRow(
            gpu=gpu,
            baseline="eager",
            group="all",
            mean=over_baselines[0],
            problems=_SIZES["all"],
            quartiles=quartiles,
            maximum=maximum,
            faster=faster,
        )
        for baseline, mean in zip(_BASELINES[1:], over_baselines[1:], strict=True):
            yield PaperRow(gpu=gpu, baseline=baseline, group="all", mean=mean, problems=_SIZES["all"])
        for group, mean in zip(list(_SIZES)[1:], by_level, strict=True):
            yield PaperRow(gpu=gpu, baseline="eager", group=group, mean=mean, problems=_SIZES[group])
