"""Tables of rejudged kernels: beside what was claimed, what became of each, and how often a baseline beats them."""

from collections import Counter
from collections.abc import Iterable, Sequence

from tasks.judge.verdict import Speedup
from tasks.report import statistics
from tasks.report.baselines import BEST_BASELINE, EAGER, EVEN, best_baseline, over, with_best_baseline
from tasks.report.kernel_tables import quoted_table, speedups_over
from tasks.report.paper import PAID_ABOVE, PROBLEM_SET, paper_rows
from tasks.report.quoted import HEADER, Missing, quoted
from tasks.report.rejudged import DeviceResult, Rejudged
from tasks.report.tables import MISSING, TextTable, speed
from tasks.variants.imported import ImportedKernel

RESAMPLES, SEED = 2000, 0  # of the bootstrap; there is no stage here whose params could say
ALL = "all"


def device_tables(result: DeviceResult) -> list[TextTable]:
    """Everything about one device, the shortest answers first."""
    origins = list(result.rejudged)
    return [
        *(side_by_side(result, origin) for origin in origins),
        fate_table(result),
        beaten_table(result),
        baseline_table(result),
        *(origin_table(result, origin) for origin in origins),
        unfit_table(result),
        *(kernels_table(result, origin) for origin in origins),
    ]


def side_by_side(result: DeviceResult, origin: str) -> TextTable:
    """The paper's row, the file's claims and what was judged here, over each baseline and level."""
    rejudged = result.rejudged[origin]
    kernels = result.kernels(origin)
    levels = sorted({problem.level for problem in result.problems})
    groups = {ALL: set(levels), **{f"level {level}": {level} for level in levels}}
    eager = {problem.problem_id: 1.0 for problem in result.problems}
    medians = with_best_baseline(_medians(result), eager)
    gpus = {one.kernel.device for one in rejudged if one.problem.problem_set == PROBLEM_SET}
    paper = {(row.baseline, row.group): row for gpu in gpus for row in paper_rows(gpu)}
    rows: list[tuple[str, ...]] = []
    for baseline, of_baseline in {EAGER: eager, **medians}.items():
        for group, members in groups.items():
            if row := paper.get((baseline, group)):
                quartiles = row.quartiles or (None, None, None)
                paid = MISSING if row.faster is None else f"{row.faster} of {row.problems}"
                cells = (MISSING, speed(row.mean), *map(speed, quartiles), speed(row.maximum), paid)
                rows.append((baseline, group, "paper", str(row.problems), *cells))
            claims = _claims((one.kernel for one in rejudged if one.problem.level in members), baseline)
            if any(claim is not None for claim in claims):
                rows.append((baseline, group, "claimed", *_short_cells(claims)))
            judged = speedups_over([one for one in kernels if one.problem.level in members], of_baseline)
            rows.append((baseline, group, "judged", *_short_cells(judged)))
    return TextTable(
        title=f"{origin}: the paper, the claims and what was judged",
        header=(
            *("over", "problems of", "whose", "problems", "geomean", "mean", "25 %", "median", "75 %", "max"),
            f"> {PAID_ABOVE}x",
        ),
        rows=tuple(rows),
        labels=3,
        note=(
            f"paper: as printed, for the GPU that the file is named after; only beside problems of {PROBLEM_SET}. "
            f"claimed: as in the file, of a problem's kernels the highest. judged: the fastest of them on "
            f"{result.label}, protocol {result.protocol}. A problem without a kernel, or with one that is not usable, "
            f"counts as 1.00x; but over cuda_graph the paper leaves problems without a graph out. Problems with an "
            f"unfit reference count for the paper and the claims only."
        ),
    )


def fate_table(result: DeviceResult) -> TextTable:
    """How many kernels of each origin are usable, and what is wrong with the others."""
    rows = []
    for origin, rejudged in result.rejudged.items():
        for (fate, check), count in Counter((one.fate, one.failed_check) for one in rejudged).most_common():
            claims = [
                one.kernel.claims[EAGER]
                for one in rejudged
                if (one.fate, one.failed_check) == (fate, check) and EAGER in one.kernel.claims
            ]
            rows.append((origin, fate, check, str(count), speed(statistics.mean(claims))))
    return TextTable(
        title="What became of the kernels",
        header=("origin", "fate", "failed check", "kernels", "mean claim"),
        rows=tuple(rows),
        labels=3,
        note=f"{result.label}, protocol {result.protocol}. Claims over eager, as the file has them.",
    )


def beaten_table(result: DeviceResult) -> TextTable:
    """How often simply running the reference in another way is faster than the kernel."""
    rows = []
    for origin, rejudged in result.rejudged.items():
        for baseline in (EAGER, *result.baselines, BEST_BASELINE):
            found = [speedup for one in rejudged if (speedup := _speedup_over(result, one, baseline)) is not None]
            slower = sum(speedup.median < 1 for speedup in found)
            surely_slower = sum(speedup.high < 1 for speedup in found)
            surely_faster = sum(speedup.low > 1 for speedup in found)
            rows.append((origin, baseline, *map(str, (len(found), surely_faster, slower, surely_slower))))
    return TextTable(
        title="How often a baseline beats a usable kernel",
        header=("origin", "baseline", "kernels", "surely faster", "slower", "surely slower"),
        rows=tuple(rows),
        labels=2,
        note=(
            f"{result.label}, protocol {result.protocol}. Usable kernels on problems on which the baseline works. "
            f"surely: all of the 90% interval of the ratio, which follows by propagation from the intervals of kernel "
            f"and baseline over eager."
        ),
    )


def baseline_table(result: DeviceResult) -> TextTable:
    """What the reference gains by being run in another way."""
    control = {problem_id: speedup.median for problem_id, speedup in result.control.items()}
    eager = {problem.problem_id: 1.0 for problem in result.problems if problem.problem_id in control}
    rows = []
    for name, speedups in {f"{EAGER} (control)": control, **with_best_baseline(_medians(result), eager)}.items():
        numbers = quoted(list(speedups.values()), missing=Missing.LEFT_OUT, resamples=RESAMPLES, seed=SEED)
        failed = Counter(status.value for status in result.failed_baselines.get(name, {}).values())
        rows.append((name, ", ".join(f"{count} {status}" for status, count in failed.most_common()), *numbers.cells))
    off = statistics.median([max(speedup, 1 / speedup) - 1 for speedup in control.values()])
    noise = "" if off is None else f" The control is off by {off:.1%} in the median."
    return TextTable(
        title="The baselines over eager",
        header=("baseline", "failed on", *HEADER),
        rows=tuple(rows),
        labels=2,
        note=(
            f"{result.label}, protocol {result.protocol}. Problems on which the baseline works; each was checked as a "
            f"candidate is. eager (control): the reference timed against itself.{noise}"
        ),
    )


def origin_table(result: DeviceResult, origin: str) -> TextTable:
    """The numbers of the field for one origin's kernels."""
    return quoted_table(
        result.kernels(origin),
        baselines=_medians(result),
        unfit=result.unfit,
        device=result.label,
        protocol=result.protocol,
        resamples=RESAMPLES,
        seed=SEED,
        title=f"{origin} in the numbers of the field",
    )


def unfit_table(result: DeviceResult) -> TextTable:
    """The problems that cannot tell a right kernel from a wrong one."""
    return TextTable(
        title="Problems that count nowhere",
        header=("problem", "why"),
        rows=tuple((problem_id, detail.partition("\n")[0]) for problem_id, detail in result.unfit.items()),
        labels=2,
        note=f"References that fail, draw numbers or do not depend on their inputs. {result.label}.",
    )


def kernels_table(result: DeviceResult, origin: str) -> TextTable:
    """One row per kernel: claimed, judged, over the best baseline, and why not."""
    return TextTable(
        title=f"{origin}: every kernel",
        header=(
            *("problem", "fate", "status", "track", "reason"),
            *("claimed", "judged", "90% interval", "best baseline", "over that"),
        ),
        rows=tuple(_kernel_cells(result, one) for one in result.rejudged[origin]),
        labels=5,
        note=(
            f"Speedups over eager; best: the fastest baseline of the problem, and the kernel's speedup over that. "
            f"{result.label}, protocol {result.protocol}."
        ),
    )


def device_table(results: Sequence[DeviceResult]) -> TextTable:
    """Every origin on every device, over eager and over the best baseline."""
    rows = []
    for result in results:
        eager = {problem.problem_id: 1.0 for problem in result.problems}
        medians = {EAGER: eager, **with_best_baseline(_medians(result), eager)}
        for origin in result.rejudged:
            for baseline in (EAGER, BEST_BASELINE):
                speedups = speedups_over(result.kernels(origin), medians.get(baseline, eager))
                numbers = quoted(speedups, missing=Missing.REFERENCE, resamples=RESAMPLES, seed=SEED)
                rows.append((result.device, result.protocol, origin, baseline, *numbers.cells))
    return TextTable(
        title="Device by device",
        header=("device", "protocol", "origin", "over", *HEADER),
        rows=tuple(rows),
        labels=4,
        note="Problems without a usable kernel count as 1.00x in means and quartiles, and as not solved in fast_p.",
    )


def same_kernels_table(results: Sequence[DeviceResult]) -> TextTable:
    """The kernels that have a verdict on every device, and how far each device agrees with the first."""
    rows = []
    for origin in results[0].rejudged:
        judged = [
            {one.verdict.candidate_id: one for one in result.rejudged[origin] if one.verdict} for result in results
        ]
        common = [key for key in judged[0] if all(key in found for found in judged)]
        everywhere = [key for key in common if all(_speedup(found[key]) for found in judged)]
        first = [_speedup(judged[0][key]) for key in everywhere]
        for result, found in zip(results, judged, strict=True):
            speedups = [_speedup(found[key]) for key in everywhere]
            ratios = [ours / theirs for ours, theirs in zip(speedups, first, strict=True) if ours and theirs]
            numbers = [
                len(common),
                sum(found[key].fate == judged[0][key].fate for key in common),
                sum(_speedup(found[key]) is not None for key in common),
                len(everywhere),
            ]
            shift = [f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else MISSING]
            means = [statistics.geometric_mean(speedups), statistics.median(ratios)]
            rows.append((result.device, result.protocol, origin, *map(str, numbers), *map(speed, means), *shift))
    return TextTable(
        title="The same kernels on each device",
        header=(
            *("device", "protocol", "origin", "kernels", "same fate", "usable", "usable on all", "geomean of these"),
            *("over the first device's, median", "range"),
        ),
        rows=tuple(rows),
        labels=3,
        note="Kernels with a verdict on all of these devices; same fate: as on the first. Speedups are over eager.",
    )


def _speedup(one: Rejudged) -> float | None:
    return one.verdict.speedup if one.verdict else None


def _kernel_cells(result: DeviceResult, one: Rejudged) -> tuple[str, ...]:
    verdict, claim = one.verdict, one.kernel.claims.get(EAGER)
    labels = (
        one.problem.problem_id,
        one.fate,
        verdict.status.value if verdict else "",
        verdict.track.value if verdict and verdict.track else "",
        one.reason,
    )
    if verdict is None or verdict.timing is None:
        return (*labels, speed(claim), MISSING, MISSING, MISSING, MISSING)
    speedup = verdict.timing.speedup
    name, best = best_baseline(result.baselines, one.problem.problem_id)
    interval = f"{speedup.low:.2f} to {speedup.high:.2f}"
    return (*labels, speed(claim), speed(speedup.median), interval, name, speed(over(speedup, best).median))


def _speedup_over(result: DeviceResult, one: Rejudged, baseline: str) -> Speedup | None:
    """A usable kernel's speedup over a baseline that works on its problem."""
    if one.verdict is None or one.verdict.timing is None or one.problem.problem_id in result.unfit:
        return None
    if baseline == BEST_BASELINE:
        divisor: Speedup | None = best_baseline(result.baselines, one.problem.problem_id)[1]
    else:
        divisor = EVEN if baseline == EAGER else result.baselines[baseline].get(one.problem.problem_id)
    return over(one.verdict.timing.speedup, divisor) if divisor else None


def _medians(result: DeviceResult) -> dict[str, dict[str, float]]:
    return {
        name: {problem_id: speedup.median for problem_id, speedup in speedups.items()}
        for name, speedups in result.baselines.items()
    }


def _claims(kernels: Iterable[ImportedKernel], baseline: str) -> list[float | None]:
    """One for every problem, the highest of its kernels' as of those judged the fastest counts."""
    claims: dict[str, list[float]] = {}
    for kernel in kernels:
        of_problem = claims.setdefault(kernel.problem_id, [])
        if baseline in kernel.claims:
            of_problem.append(kernel.claims[baseline])
    return [max(of_problem, default=None) for of_problem in claims.values()]


def _short_cells(speedups: Sequence[float | None]) -> tuple[str, ...]:
    counted = statistics.or_reference(speedups)
    quartiles = statistics.quartiles(counted) or (None, None, None)
    averages = (statistics.geometric_mean(counted), statistics.mean(counted), *quartiles, statistics.maximum(counted))
    paid = round(statistics.fast_p(counted, p=PAID_ABOVE) * len(counted))
    return (str(len(counted)), *map(speed, averages), f"{paid} of {len(counted)}")
