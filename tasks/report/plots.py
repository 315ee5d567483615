"""The report's figures, as plotly figures that also stand alone, for MLflow.

Backgrounds are transparent and every colour has at least 3:1 contrast to white and to the page's dark background; the
page's style sheet recolours text and grid lines for either. No figure tells things apart by colour alone.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tasks.judge.verdict import Status, Track
from tasks.problems.problem import Split
from tasks.report.baselines import Baselines
from tasks.report.kernel_tables import fastest_first
from tasks.report.statistics import Interval
from tasks.report.summary import BestKernel, PolicySample, SummaryRow

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Curves = Mapping[str, Sequence[Mapping[str, float]]]
"""Stage to its rows, each with "step" and any number of named values."""

BLUE, AMBER, GREEN, PINK, VIOLET, GREY = "#3b86d9", "#c47f0e", "#16976f", "#cf4f92", "#8a6fe0", "#7f8894"
STAGE_STYLE = {"sft": (BLUE, "dot"), "self_supervised": (AMBER, "dash"), "contrastive_rl": (GREEN, "solid")}
TRACK_STYLE = {
    Track.KERNEL: (PINK, "diamond"),
    Track.GRAPH: (VIOLET, "square"),
    Track.FRAMEWORK: (BLUE, "circle"),
    None: (GREY, "star"),
}
STATUS_STYLE = {
    Status.CORRECT: (GREEN, ""),
    Status.WRONG_OUTPUT: (AMBER, "/"),
    Status.CRASHED: (PINK, "\\"),
    Status.COMPILE_ERROR: (VIOLET, "x"),
    Status.TIMEOUT: (BLUE, "|"),
    Status.REJECTED: (GREY, ""),
    Status.CHEATED: (GREY, "+"),
    Status.UNSTABLE: (GREY, "."),
    Status.BAD_PROBLEM: (GREY, "-"),
}
STANDALONE_TEXT = "#5b6472"


def speed_curve(samples: Sequence[PolicySample], *, split: Split) -> "Figure | None":
    """Share of each policy's samples that are correct and faster than x, for every x: fast_p over p.

    Shows correctness, where a line starts, and speed, how far right it reaches. None when no sample of the split is
    correct.
    """
    chosen = _preferred_mode([sample for sample in samples if sample.split is split])
    known = [sample.speedup for sample in chosen if sample.speedup is not None]
    if not known:
        return None
    lowest, highest = 0.95 * min([1, *known]), max([1.2, *known])
    figure = _figure(f"Samples correct and faster than x, {_words(split)}", height=320)
    for policy in dict.fromkeys(sample.policy for sample in chosen):
        of_policy = [sample.speedup for sample in chosen if sample.policy == policy]
        speedups = sorted(speedup for speedup in of_policy if speedup is not None)
        remaining = [(len(speedups) - index) / len(of_policy) for index in range(len(speedups) + 1)]
        colour, dash = STAGE_STYLE.get(policy, (GREY, "dashdot"))
        figure.add_scatter(
            x=[lowest, *speedups],
            y=remaining,
            name=policy,
            mode="lines",
            line={"color": colour, "dash": dash, "shape": "hv", "width": 2.5},
            hovertemplate="%{y:.0%} are faster than %{x:.2f}x",
        )
    figure.add_vline(x=1, line={"color": GREY, "width": 1, "dash": "dot"})
    figure.update_xaxes(_speed_axis(lowest, highest))
    figure.update_yaxes(title="share of samples", tickformat=".0%", range=[0, 1.02])
    return figure


def progress_bars(rows: Sequence[SummaryRow], *, split: Split) -> "Figure | None":
    """Share of samples that parse, run and are correct, by stage; None when the split has no rows."""
    chosen = _preferred_mode([row for row in rows if row.split is split])
    if not chosen:
        return None
    figure = _figure(f"Samples parsed, ran and correct, {_words(split)}", height=320)
    for name, colour, pattern in (("parsed", GREY, "."), ("ran", BLUE, "/"), ("correct", GREEN, "")):
        shares = [getattr(row, name) for row in chosen]
        figure.add_bar(
            x=[row.policy for row in chosen],
            y=shares,
            name=name,
            marker={"color": colour, "pattern": {"shape": pattern, "fillmode": "overlay", "fgopacity": 0.4}},
            error_y=_error(shares, [row.correct_interval for row in chosen]) if name == "correct" else None,
            hovertemplate="%{x}: %{y:.1%}",
        )
    figure.update_layout(barmode="group", bargap=0.25)
    figure.update_yaxes(title="share of samples", tickformat=".0%", range=[0, 1.05])
    return figure


def kernel_dots(kernels: Sequence[BestKernel], *, baselines: Baselines) -> "Figure":
    """The best kernel of every problem on a log axis, by track, with its 90% interval and the other baselines."""
    ordered = fastest_first(kernels)
    figure = _figure("Best kernel of every problem", height=130 + 19 * len(ordered))
    for name, speedups in baselines.items():
        timed = [kernel.problem.problem_id for kernel in ordered if kernel.problem.problem_id in speedups]
        if name != "eager":
            marker = {"symbol": "line-ns-open", "size": 11, "color": GREY, "line": {"width": 2, "color": GREY}}
            figure.add_scatter(x=[speedups[problem] for problem in timed], y=timed, name=name, marker=marker)
    for track, (colour, symbol) in TRACK_STYLE.items():
        on_track = [kernel for kernel in ordered if kernel.verdict and kernel.verdict.track is track]
        if on_track:
            figure.add_scatter(
                y=[kernel.problem.problem_id for kernel in on_track],
                **_speed_points(on_track),
                name=track.value if track else "unknown track",
                marker={"symbol": symbol, "size": 10, "color": colour},
                customdata=[kernel.candidate.origin if kernel.candidate else "" for kernel in on_track],
                hovertemplate="%{y}: %{x:.2f}x, by %{customdata}",
            )
    missing = [kernel.problem.problem_id for kernel in ordered if kernel.verdict is None]
    if missing:
        marker = {"symbol": "x-thin-open", "size": 9, "color": GREY}
        figure.add_scatter(x=[1.0] * len(missing), y=missing, name="none correct, counts as 1x", marker=marker)
    figure.update_traces(mode="markers")
    figure.add_vline(x=1, line={"color": GREY, "width": 1, "dash": "dot"})
    known = [kernel.speedup for kernel in ordered if kernel.speedup is not None]
    known += [speedup for speedups in baselines.values() for speedup in speedups.values()]
    figure.update_xaxes(_speed_axis(min([0.9, *known]), max([1.2, *known])))
    figure.update_yaxes(
        categoryorder="array", categoryarray=[kernel.problem.problem_id for kernel in reversed(ordered)], dtick=1
    )
    return figure


def page_style() -> dict[str, Any]:
    """Colours and symbols by what they stand for, and those of any series, for charts that the page itself makes."""
    return {
        "stages": {stage: colour for stage, (colour, _) in STAGE_STYLE.items()},
        "tracks": {track.value if track else "unknown": style for track, style in TRACK_STYLE.items()},
        "statuses": {status.value: style for status, style in STATUS_STYLE.items()},
        "series": [BLUE, AMBER, GREEN, PINK, VIOLET, GREY],
        "dashes": ["solid", "dash", "dot", "dashdot", "longdash"],
    }


def _figure(title: str, *, height: int) -> "Figure":
    from plotly import graph_objects

    layout = graph_objects.Layout(
        title={"text": title, "font": {"size": 15}, "x": 0.01, "xref": "container"},
        height=height,
        margin={"l": 10, "r": 10, "t": 45, "b": 10},
        font={"family": "system-ui, sans-serif", "size": 12, "color": STANDALONE_TEXT},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        legend={"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"},
        xaxis={"automargin": True, "gridcolor": "rgba(127,136,148,0.3)", "zeroline": False},
        yaxis={"automargin": True, "gridcolor": "rgba(127,136,148,0.3)", "zeroline": False, "ticksuffix": " "},
        hovermode="closest",
        template="none",
    )
    return graph_objects.Figure(layout=layout)


def _speed_axis(lowest: float, highest: float) -> dict[str, Any]:
    padded = [math.log10(lowest) - 0.05, math.log10(highest) + 0.05]
    leading = (1, 1.5, 2, 3, 5, 7) if highest / lowest < 20 else (1, 2, 5)
    ticks = [digit * 10.0**power for power in range(-3, 5) for digit in leading]
    return {
        "type": "log",
        "range": padded,
        "title": "speedup over eager",
        "tickvals": ticks,
        "ticktext": [f"{tick:g}x" for tick in ticks],
    }


def _words(name: str) -> str:
    return name.replace("_", " ")


def _preferred_mode(items: Sequence[Any]) -> list[Any]:
    """Those sampled, or the greedy ones where nothing was sampled."""
    return [item for item in items if item.mode == "sampled"] or list(items)


def _error(values: Sequence[float], intervals: Sequence[Interval | None]) -> dict[str, Any]:
    pairs = list(zip(values, intervals, strict=True))
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(interval.high - value, 0) if interval else 0 for value, interval in pairs],
        "arrayminus": [max(value - interval.low, 0) if interval else 0 for value, interval in pairs],
        "color": GREY,
    }


def _speed_points(kernels: Sequence[BestKernel]) -> dict[str, Any]:
    speedups = [kernel.verdict.timing.speedup for kernel in kernels if kernel.verdict and kernel.verdict.timing]
    medians = [speedup.median for speedup in speedups]
    return {"x": medians, "error_x": _error(medians, [Interval(low=s.low, high=s.high) for s in speedups])}
