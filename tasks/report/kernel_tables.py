"""Tables of the best kernels: one row per problem, and the numbers of the field by level, track and split."""

from collections.abc import Sequence

from tasks.problems.problem import Split
from tasks.report import statistics
from tasks.report.baselines import Baselines, with_best_baseline
from tasks.report.summary import BestKernel
from tasks.report.tables import MISSING, TextTable, share, speed


def kernel_table(kernels: Sequence[BestKernel], *, device: str, protocol: str) -> TextTable:
    """The best verified kernel of every problem, fastest first, and the geometric mean over all of them."""
    ordered = fastest_first(kernels)
    speedups = [kernel.speedup for kernel in ordered]
    mean = statistics.geometric_mean(statistics.or_reference(speedups))
    return TextTable(
        title="Best kernels",
        header=("problem", "split", "origin", "track", "speedup", "90% interval"),
        rows=(
            *(_kernel_cells(kernel) for kernel in ordered),
            (f"geomean of {len(ordered)} problems", "", "", "", speed(mean), ""),
        ),
        labels=4,
        note=(
            f"Median speedup over eager on {device}, protocol {protocol}, and its 90% interval. {missing_note(kernels)}"
        ),
    )


def quoted_table(kernels: Sequence[BestKernel], *, baselines: Baselines, device: str, protocol: str) -> TextTable:
    """Mean, geometric mean, quartiles, maximum and fast_p of the best kernels, against each baseline.

    Over another baseline than eager, a kernel's speedup is divided by that baseline's own speedup over eager; problems
    on which the baseline was not timed are left out.
    """
    eager = {kernel.problem.problem_id: 1.0 for kernel in kernels}
    named = {"eager": eager, **with_best_baseline(baselines, eager)}
    return TextTable(
        title="Best kernels in the numbers of the field",
        header=(
            *("baseline", "problems of", "problems", "geomean", "mean", "25 %", "median", "75 %", "max"),
            *("fast_0", "fast_1", "fast_1.2", "fast_2"),
        ),
        rows=tuple(
            (name, group, *_quoted_cells(members, over))
            for name, over in named.items()
            for group, members in _groups(kernels).items()
        ),
        labels=2,
        note=(
            f"{device}, protocol {protocol}. {missing_note(kernels)} fast_p counts them as not solved, and "
            f"goes by the median: noise lifts a kernel as fast as the baseline above fast_1 about half the time. "
            f"best: the fastest baseline of each problem."
        ),
    )


def fastest_first(kernels: Sequence[BestKernel]) -> list[BestKernel]:
    return sorted(kernels, key=lambda kernel: kernel.speedup or 0, reverse=True)


def missing_note(kernels: Sequence[BestKernel]) -> str:
    missing = sum(kernel.speedup is None for kernel in kernels)
    return (
        f"{missing} of {len(kernels)} problems have no correct kernel; they count as 1.00x in means and quartiles, "
        f"because the reference would be used instead."
    )


def _groups(kernels: Sequence[BestKernel]) -> dict[str, list[BestKernel]]:
    """All problems, then each level, split and track that has any."""
    groups = {"all": list(kernels)}
    for kernel in sorted(kernels, key=lambda kernel: kernel.problem.level):
        groups.setdefault(f"level {kernel.problem.level}", []).append(kernel)
    for split in Split:
        groups[split.value] = [kernel for kernel in kernels if kernel.problem.split is split]
    for kernel in kernels:
        if kernel.verdict and kernel.verdict.track:
            groups.setdefault(f"track {kernel.verdict.track.value}", []).append(kernel)
    return {name: members for name, members in groups.items() if members}


def _quoted_cells(kernels: Sequence[BestKernel], over: dict[str, float]) -> tuple[str, ...]:
    speedups = [
        None if kernel.speedup is None else kernel.speedup / over[kernel.problem.problem_id]
        for kernel in kernels
        if kernel.problem.problem_id in over
    ]
    counted = statistics.or_reference(speedups)
    quartiles = statistics.quartiles(counted) or (None, None, None)
    averages = (statistics.geometric_mean(counted), statistics.mean(counted), *quartiles, statistics.maximum(counted))
    shares = (share(statistics.fast_p(speedups, p=p)) for p in (0, 1, 1.2, 2))
    return (str(len(speedups)), *map(speed, averages), *shares)


def _kernel_cells(kernel: BestKernel) -> tuple[str, ...]:
    problem = (kernel.problem.problem_id, kernel.problem.split.value)
    if kernel.verdict is None or kernel.verdict.timing is None:
        return (*problem, MISSING, MISSING, MISSING, MISSING)
    speedup = kernel.verdict.timing.speedup
    return (
        *problem,
        kernel.candidate.origin if kernel.candidate else MISSING,
        kernel.verdict.track.value if kernel.verdict.track else MISSING,
        speed(speedup.median),
        f"{speedup.low:.2f} to {speedup.high:.2f}",
    )
