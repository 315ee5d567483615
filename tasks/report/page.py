"""The report: one self-contained HTML page that works offline. Everything it shows is escaped, or written as text.

What enters the page unescaped is made for that place by a library: figures as JSON (plotly), compressed data and
plotly.js itself as base64, and the colours of highlighted sources.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tasks.problems.problem import Problem, Split
from tasks.report import kernel_tables, plots, statistics, tables
from tasks.report.baselines import Baselines
from tasks.report.exploration import Exploration
from tasks.report.payload import explored, kernel_texts, packed
from tasks.report.summary import BestKernel, Gain, PolicySample, SummaryRow

if TYPE_CHECKING:
    from jinja2 import Environment
    from plotly.graph_objects import Figure

LONG_TABLE = 14
"""Rows above which a table starts folded."""
SCRIPTS = "scripts"
SOURCE_STYLES = ("xcode", "lightbulb")
"""Of pygments, for light and dark; their colours stand out from the page's own backgrounds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportData:
    """What the stage evaluate found; nothing is read from disk or computed from the network."""

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

    split: str
    json: str


def render_report(data: ReportData, exploration: Exploration) -> str:
    """The page of one run of all stages: what was measured of the policies, and every verdict."""
    import yaml

    quoted = {"device": data.device, "protocol": data.protocol}
    return _rendered(
        exploration,
        curves=data.curves,
        intro=(
            f"{len(data.problems)} problems on {data.device}, protocol {data.protocol}. Every speedup is the time of "
            f"the reference in eager mode divided by the time of the kernel, measured side by side."
        ),
        headlines=_headlines(data),
        stage_tables=[
            tables.stage_table(data.summary, **quoted),
            tables.gain_table(data.gains),
            tables.problem_table(data.summary, **quoted),
        ],
        charts=_charts(data),
        kernel_tables=[
            kernel_tables.quoted_table(
                data.kernels,
                baselines=data.baselines,
                unfit=data.unfit,
                resamples=data.resamples,
                seed=data.seed,
                **quoted,
            )
        ],
        data=data,
        params_text=yaml.safe_dump(dict(data.params), sort_keys=False),
    )


def render_history(exploration: Exploration, *, name: str) -> str:
    """The page of a whole history, whatever was recorded in it: also of those who only search or judge."""
    devices = exploration.verdicts["device"].n_unique()
    return _rendered(
        exploration,
        curves=None,
        intro=(
            f"{len(exploration.verdicts):,} verdicts on {exploration.verdicts['candidate_id'].n_unique():,} candidates "
            f"for {exploration.verdicts['problem_id'].n_unique():,} problems on {devices} "
            f"{'device' if devices == 1 else 'devices'}, all that {name} remembers. Every speedup is the time of a "
            f"baseline divided by the time of the kernel, measured side by side."
        ),
        headlines=[],
        stage_tables=[],
        charts=[],
        kernel_tables=[],
        data=None,
        params_text="",
    )


def _rendered(exploration: Exploration, *, curves: plots.Curves | None, **parts: Any) -> str:
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    templates = _templates()
    scripts = sorted(name for name in templates.list_templates() if name.startswith(f"{SCRIPTS}/"))
    pages = exploration.pages
    return templates.get_template("page.html").render(
        **parts,
        long_table=LONG_TABLE,
        num_pages=len(pages.kernels),
        num_without_page=pages.num_without,
        scripts=scripts,
        source_css=Markup(source_css()),
        style=plots.page_style(),
        packed_data=packed(explored(exploration, curves=curves)),
        packed_texts=packed(kernel_texts(exploration)),
        packed_plotly=packed(get_plotlyjs()),
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


def source_css() -> str:
    """A rule for each kind of token that has a colour, for light and for dark."""
    from pygments.styles import get_style_by_name
    from pygments.token import STANDARD_TYPES

    light, dark = (get_style_by_name(style) for style in SOURCE_STYLES)
    rules = []
    for kind, name in STANDARD_TYPES.items():
        pair = [style.style_for_token(kind)["color"] for style in (light, dark)]
        if name and any(pair):
            colours = (f"#{colour}" if colour else "currentcolor" for colour in pair)
            rules.append(f".tok-{name} {{ color: light-dark({', '.join(colours)}); }}")
    return "\n".join(rules)


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
                name=f"of samples correct, {row.split.replace('_', ' ')}",
                note=f"{row.policy}, {row.samples} samples of {row.problems} problems; geomean {speedup}",
            )
        )
    return found


def _charts(data: ReportData) -> list[Chart]:
    """Progress and speed of every split that was sampled."""
    from markupsafe import Markup

    figures: dict[Split, list[Figure | None]] = {
        split: [plots.progress_bars(data.summary, split=split), plots.speed_curve(data.samples, split=split)]
        for split in Split
    }
    return [
        # plotly's JSON has no "<" left in it, so it cannot end the script element that holds it.
        Chart(split=split.value, json=Markup(figure.to_json().replace("<", "\\u003c")))
        for split, drawn in figures.items()
        for figure in drawn
        if figure is not None
    ]
