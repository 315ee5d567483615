"""The report: one self-contained HTML page that works offline. Everything it shows is escaped by the template engine.

Only three things enter the page unescaped, and each is made by a library for that place: highlighted sources
(pygments), figures as JSON (plotly), and plotly.js itself.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tasks.judge.verdict import Status, Timing
from tasks.problems.problem import Problem, Split
from tasks.report import kernel_tables, plots, statistics, tables
from tasks.report.baselines import Baselines
from tasks.report.summary import BestKernel, Gain, PolicySample, SummaryRow

if TYPE_CHECKING:
    from jinja2 import Environment
    from plotly.graph_objects import Figure

LONG_TABLE = 14
"""Rows above which a table starts folded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportData:
    """Everything the page shows; nothing is read from disk or computed from the network."""

    problems: Sequence[Problem]
    samples: Sequence[PolicySample]
    summary: Sequence[SummaryRow]
    gains: Sequence[Gain]
    kernels: Sequence[BestKernel]
    """One for every problem, with or without a kernel."""
    curves: plots.Curves
    baselines: Baselines
    unfit: Collection[str]
    """Problems whose reference cannot serve as the truth."""
    status_counts: Mapping[str, Mapping[str, int]]
    """Stage to status to the number of verdicts."""
    params: Mapping[str, Any]
    """The sections of params.yaml as they were used."""
    environment: Mapping[str, str]
    """Software versions and what else a result depends on, such as the commit."""
    device: str
    protocol: str
    resamples: int
    """Bootstrap draws behind every interval."""
    seed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Headline:
    """One number people quote, with what it means."""

    value: str
    name: str
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """A figure ready to be drawn by plotly.js."""

    title: str
    height: int
    json: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundPlot:
    """The speedup of each timed round as positions between 0 and 100 on a log axis."""

    points: tuple[float, ...]
    even: float
    """Position of 1x."""
    low: str
    high: str


def render_report(data: ReportData) -> str:
    """The whole page."""
    import yaml
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    templates = _templates()
    templates.globals.update(highlighted=_highlighted, round_plot=_round_plot, speed=tables.speed)
    quoted = {"device": data.device, "protocol": data.protocol}
    return templates.get_template("page.html").render(
        data=data,
        headlines=_headlines(data),
        stage_tables=[
            tables.stage_table(data.summary, **quoted),
            tables.gain_table(data.gains),
            tables.problem_table(data.summary, **quoted),
        ],
        kernel_tables=[
            kernel_tables.quoted_table(
                data.kernels,
                baselines=data.baselines,
                unfit=data.unfit,
                resamples=data.resamples,
                seed=data.seed,
                **quoted,
            ),
            kernel_tables.kernel_table(data.kernels, **quoted),
        ],
        status_table=_status_table(data.status_counts),
        stage_charts=_charts(
            [plots.progress_bars(data.summary, split=split) for split in Split]
            + [plots.speed_curve(data.samples, split=split) for split in Split]
        ),
        curve_charts=_charts(plots.learning_curves(data.curves)),
        kernel_charts=_charts([plots.kernel_dots(data.kernels, baselines=data.baselines)]),
        status_charts=_charts([plots.status_bars(data.status_counts)] if data.status_counts else []),
        kernels=kernel_tables.fastest_first([kernel for kernel in data.kernels if kernel.verdict]),
        params_text=yaml.safe_dump(dict(data.params), sort_keys=False),
        long_table=LONG_TABLE,
        highlight_css=Markup(_highlight_css()),
        plotly_js=Markup(get_plotlyjs()),
    )


def render_tables(title: str, sections: Mapping[str, Sequence[tables.TextTable]]) -> str:
    """A page of tables under headings, the long ones folded."""
    return _templates().get_template("tables.html").render(title=title, sections=sections, long_table=LONG_TABLE)


def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("tasks.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _headlines(data: ReportData) -> list[Headline]:
    """What the best kernels come to, and what the last policy writes, train and held out apart."""
    speedups = [kernel.speedup for kernel in data.kernels]
    mean = statistics.geometric_mean(statistics.or_reference(speedups))
    found = [
        Headline(
            value=tables.speed(mean),
            name="best verified kernels",
            note=f"geomean over eager, {len(speedups)} problems; without a correct kernel a problem counts as 1.00x",
        ),
        Headline(
            value=tables.share(sum(kernel.is_faster for kernel in data.kernels) / max(len(data.kernels), 1)),
            name="of problems made faster",
            note=(
                f"all of the best kernel's interval is above 1.00x over eager; "
                f"{tables.share(statistics.fast_p(speedups, p=2))} have a median above 2.00x"
            ),
        ),
    ]
    last = data.summary[-1].policy if data.summary else None
    rows = [row for row in data.summary if row.policy == last and row.mode == "sampled"]
    for row in rows:
        speedup = tables.speed_with_interval(row.speedup, row.speedup_interval)
        found.append(
            Headline(
                value=tables.share(row.correct),
                name=f"of samples correct, {_words(row.split)}",
                note=f"{row.policy}, {row.samples} samples of {row.problems} problems; geomean {speedup}",
            )
        )
    return found


def _status_table(status_counts: Mapping[str, Mapping[str, int]]) -> tables.TextTable:
    statuses = [status for status in Status if any(counts.get(status.value) for counts in status_counts.values())]
    return tables.TextTable(
        title="Verdicts by stage and status",
        header=("stage", "judged", *(_words(status) for status in statuses)),
        rows=tuple(
            (stage, str(sum(counts.values())), *(str(counts.get(status.value, 0)) for status in statuses))
            for stage, counts in status_counts.items()
        ),
        labels=1,
        note="Numbers of verdicts. A text judged before under the same protocol is not judged again.",
    )


def _charts(figures: "Sequence[Figure | None]") -> list[Chart]:
    from markupsafe import Markup

    return [
        # plotly's JSON has no "<" left in it, so it cannot end the script element that holds it.
        Chart(
            title=figure.layout.title.text,
            height=figure.layout.height,
            json=Markup(figure.to_json().replace("<", "\\u003c")),
        )
        for figure in figures
        if figure is not None
    ]


def _round_plot(timing: Timing) -> RoundPlot:
    ratios = [
        reference / candidate for reference, candidate in zip(timing.reference_ms, timing.candidate_ms, strict=True)
    ]
    logs = [math.log(ratio) for ratio in ratios]
    low, high = min([0.0, *logs]) - 0.05, max([0.0, *logs]) + 0.05
    return RoundPlot(
        points=tuple(round(100 * (log - low) / (high - low), 2) for log in logs),
        even=round(100 * (0.0 - low) / (high - low), 2),
        low=tables.speed(min(ratios)),
        high=tables.speed(max(ratios)),
    )


def _highlighted(source: str) -> Any:
    """The source as HTML with a class for every kind of token; pygments escapes it."""
    from markupsafe import Markup
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return Markup(highlight(source, PythonLexer(), HtmlFormatter(nowrap=True)))


def _highlight_css() -> str:
    from pygments.formatters import HtmlFormatter

    light, dark = (HtmlFormatter(style=style).get_style_defs("pre.source") for style in ("xcode", "github-dark"))
    return f"@media (prefers-color-scheme: light) {{{light}}}\n@media (prefers-color-scheme: dark) {{{dark}}}"


def _words(name: str) -> str:
    return name.replace("_", " ")
