"""Tables of the best kernels: one row per problem, and the numbers of the field by level, track and split."""

from collections.abc import Collection, Mapping, Sequence

from tasks.problems.problem import Split
from tasks.report import statistics
from tasks.report.baselines import EAGER, Baselines, with_best_baseline
from tasks.report.quoted import HEADER, Missing, quoted
from tasks.report.summary import BestKernel
from tasks.report.tables import MISSING, TextTable, speed


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


def quoted_table(
    kernels: Sequence[BestKernel],
    *,
    baselines: Baselines,
    unfit: Collection[str],
    device: str,
    protocol: str,
    resamples: int,
    seed: int,
    title: str = "Best kernels in the numbers of the field",
) -> TextTable:
    """Mean, geometric mean, quartiles, maximum and fast_p of the kernels, against each baseline and the best of them.

    Over another baseline than eager, a kernel's speedup is divided by that baseline's own speedup over eager; problems
    on which the baseline was not timed are left out.

    Args:
        unfit: problems whose reference cannot serve as the truth, which count nowhere.
        resamples, seed: of the bootstrap behind the intervals.
    """
    kept = [kernel for kernel in kernels if kernel.problem.problem_id not in unfit]
    eager = {kernel.problem.problem_id: 1.0 for kernel in kept}
    rows = []
    for name, baseline in {EAGER: eager, **with_best_baseline(baselines, eager)}.items():
        for group, members in _groups(kept).items():
            speedups = speedups_over(members, baseline)
            for missing in Missing:
                numbers = quoted(speedups, missing=missing, resamples=resamples, seed=seed)
                if missing is Missing.REFERENCE or numbers.missing:
                    rows.append((name, group, missing.value, *numbers.cells))
    left_out = f" {len(unfit)} problems whose reference cannot serve as the truth are left out." if unfit else ""
    return TextTable(
        title=title,
        header=("baseline", "problems of", "without a kernel", *HEADER),
        rows=tuple(rows),
        labels=3,
        note=(
            f"{device}, protocol {protocol}. {missing_note(kept)}{left_out} Where some are missing, the row below has "
            f"the same without them. fast_p counts them as not solved, and goes by the median: noise lifts a kernel as "
            f"fast as the baseline above fast_1 about half the time. best: the fastest baseline of each problem, eager "
            f"included. Intervals: {statistics.CONFIDENCE:.0%} bootstrap over problems."
        ),
    )


def speedups_over(kernels: Sequence[BestKernel], baseline: Mapping[str, float]) -> list[float | None]:
    """Each kernel's speedup over a baseline; those of problems without that baseline are left out."""
    return [
        None if kernel.speedup is None else kernel.speedup / baseline[kernel.problem.problem_id]
        for kernel in kernels
        if kernel.problem.problem_id in baseline
    ]


def fastest_first(kernels: Sequence[BestKernel]) -> list[BestKernel]:
    return sorted(kernels, key=lambda kernel: kernel.speedup or 0, reverse=True)


def missing_note(kernels: Sequence[BestKernel]) -> str:
    missing = sum(kernel.speedup is None for kernel in kernels)
    return (
        f"{missing} of {len(kernels)} problems have no correct kernel; they count as 1.00x in means and quartiles, "
        f"because the reference would be used instead."
    )


def _groups(kernels: Sequence[BestKernel]) -> dict[str, list[BestKernel]]:
    """All problems, then each level, split and track that has any, unless that is all of them again."""
    groups = {"all": list(kernels)}
    for kernel in sorted(kernels, key=lambda kernel: kernel.problem.level):
        groups.setdefault(f"level {kernel.problem.level}", []).append(kernel)
    for split in Split:
        groups[split.value] = [kernel for kernel in kernels if kernel.problem.split is split]
    for kernel in kernels:
        if kernel.verdict and kernel.verdict.track:
            groups.setdefault(f"track {kernel.verdict.track.value}", []).append(kernel)
    return {name: members for name, members in groups.items() if name == "all" or 0 < len(members) < len(kernels)}


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
