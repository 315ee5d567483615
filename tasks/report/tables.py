"""Tables as text in cells, written for the terminal, for Markdown or into the page; and those of the stages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.report import statistics
from tasks.report.statistics import Interval
from tasks.report.summary import Gain, SummaryRow

if TYPE_CHECKING:
    from tasks.report.terminal import Fitted

MISSING = "-"


@dataclass(frozen=True, kw_only=True, slots=True)
class TextTable:
    """Cells as people read them. The first `labels` columns are words, the others numbers."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int
    note: str
    """What the numbers mean and how they were taken."""


def stage_table(rows: Sequence[SummaryRow], *, device: str, protocol: str) -> TextTable:
    """Stage by stage: shares that parse, run and are correct, and how fast the correct ones are."""
    return TextTable(
        title="Stage by stage",
        header=("stage", "split", "mode", "samples", "parses", "runs", "correct", "geomean", "best"),
        rows=tuple(
            (
                *_labels(row),
                str(row.samples),
                share(row.parsed),
                share(row.ran),
                share_with_interval(row.correct, row.correct_interval),
                speed_with_interval(row.speedup, row.speedup_interval),
                speed(row.best_speedup),
            )
            for row in rows
        ),
        labels=3,
        note=(
            f"Shares of samples; speedups of correct samples over eager on {device}, protocol {protocol}. "
            f"Intervals: {statistics.CONFIDENCE:.0%} bootstrap over problems. "
            f"Prompts for train problems show correct exemplars, those for held-out problems show none."
        ),
    )


def problem_table(rows: Sequence[SummaryRow], *, device: str, protocol: str) -> TextTable:
    """Stage by stage, counted over problems, and against the other baselines."""
    others = list(dict.fromkeys(name for row in rows for name in row.over_baselines))
    return TextTable(
        title="Stage by stage, by problem and by baseline",
        header=(
            *("stage", "split", "mode", "problems", "solved", "fast_1", "fast_2", "distinct", "copied"),
            *map(_versus, others),
        ),
        rows=tuple(
            (
                *_labels(row),
                str(row.problems),
                share(row.solved),
                share(row.fast_1),
                share(row.fast_2),
                share(row.distinct),
                share(row.copied),
                *(speed(row.over_baselines.get(name)) for name in others),
            )
            for row in rows
        ),
        labels=3,
        note=(
            f"solved: share of problems with a correct sample; fast_p: share of problems whose best sample is more "
            f"than p times as fast as eager; distinct: share of samples left when equal texts count once; copied: "
            f"share of samples whose text is one of the exemplars their prompt showed; vs: geomean of correct samples "
            f"over that baseline, best being the fastest of all and eager for each problem. Problems on which a "
            f"baseline failed or timed out are left out over that one, not over the best, which may thus be higher. "
            f"{device}, protocol {protocol}."
        ),
    )


def gain_table(gains: Sequence[Gain]) -> TextTable:
    """How much faster each stage's correct samples are than those of the stage before it."""
    return TextTable(
        title="Each stage against the one before",
        header=("stage", "against", "split", "mode", "ratio of geomeans"),
        rows=tuple(
            (gain.later, gain.earlier, gain.split.value, gain.mode, speed_with_interval(gain.ratio, gain.interval))
            for gain in gains
        ),
        labels=4,
        note=(
            f"Intervals: {statistics.CONFIDENCE:.0%} paired bootstrap over problems; one that excludes 1.00x says that "
            f"the stages differ."
        ),
    )


def to_rich(table: TextTable) -> "Fitted":
    """For rich's console; cells are text, never markup."""
    from tasks.report.terminal import Fitted

    return Fitted(table)


def to_markdown(table: TextTable) -> str:
    """A heading, a pipe table and the note."""
    rulers = [":---" if index < table.labels else "---:" for index in range(len(table.header))]
    lines = [_markdown_line(cells) for cells in (table.header, rulers, *table.rows)]
    return "\n".join([f"### {table.title}", "", *lines, "", table.note, ""])


def share(value: float) -> str:
    return f"{value:.0%}"


def speed(value: float | None) -> str:
    """Such as "1.52x"; three digits are all that timing on a shared machine can mean."""
    if value is None:
        return MISSING
    return f"{value:.2f}x" if value < 100 else f"{value:.0f}x"


def speed_with_interval(value: float | None, interval: Interval | None) -> str:
    return speed(value) if interval is None else f"{speed(value)} ({interval.low:.2f}-{interval.high:.2f})"


def share_with_interval(value: float, interval: Interval | None) -> str:
    return share(value) if interval is None else f"{share(value)} ({interval.low * 100:.0f}-{interval.high * 100:.0f})"


def _labels(row: SummaryRow) -> tuple[str, str, str]:
    return row.policy, row.split.value, row.mode


def _versus(baseline: str) -> str:
    return f"vs {baseline}"


def _markdown_line(cells: Sequence[str]) -> str:
    escaped = (cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(escaped)} |"
