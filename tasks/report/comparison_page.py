"""What a retraining shows of challenger and champion: a row for each problem, numbers, a page and a plot."""

import io
from collections.abc import Mapping, Sequence

from tasks.problems.problem import Split
from tasks.report.comparison import Bout, Judgement, Skill
from tasks.report.statistics import geometric_mean, or_reference

DPI = 110
FEW_POWERS = 6  # between the ends of an axis
COLOURS = {"challenger": "#d55e00", "champion": "#0072b2"}


def bout_rows(bouts: Sequence[Bout]) -> list[dict[str, str]]:
    """One row for each problem, the held-out ones first. Few columns: Prefect cuts off what is wider than its page."""
    return [
        {
            "problem": bout.problem_id,
            "split": bout.split.value,
            "challenger": _in_words(bout.challenger),
            **({"champion": _in_words(bout.champion)} if bout.champion else {}),
        }
        for bout in _in_order(bouts)
    ]


def comparison_metrics(bouts: Sequence[Bout], judgement: Judgement) -> dict[str, float]:
    """The numbers for MLflow, by split and policy; a problem without a correct candidate counts as 1.0x.

    Problems on which either's times never settled are left out of the speedups."""
    metrics: dict[str, float] = {}
    for split in Split:
        there = [bout for bout in bouts if bout.split is split]
        timed = _skills([bout for bout in there if bout.tells_speed])
        for role, skills in _skills(there).items():
            metrics[f"{split}/{role}/share_correct"] = sum(skill.share_correct for skill in skills) / len(skills)
            metrics[f"{split}/{role}/geomean"] = (
                geometric_mean(or_reference([skill.speedup for skill in timed.get(role, ())])) or 1.0
            )
    for test in judgement.tests:
        name = test.number.replace(" ", "_")
        metrics |= {f"{name}/p_better": test.p_better, f"{name}/p_worse": test.p_worse}
    return metrics


def decision_page(judgement: Judgement, metrics: Mapping[str, float], links: Mapping[str, str]) -> str:
    """The decision, why, and where the rest is, in Markdown.

    Args:
        links: where things are by what they are called; addresses become links.
    """
    reason = f"{judgement.reason[:1].upper()}{judgement.reason[1:]}."
    lines = [f"# {judgement.decision.value.capitalize()}", "", reason, ""]
    if rows := [row for split in Split for row in _summary_rows(split, metrics)]:
        lines += [
            "| problems | policy | samples correct | best kernels, geometric mean |",
            "|---|---|---:|---:|",
            *rows,
        ]
        lines += ["", "A problem without a correct candidate counts as 1.0x: the reference would be used instead.", ""]
        if any(test.num_left_out for test in judgement.tests):
            lines += ["Problems on which either policy's times never settled are left out of the speedups.", ""]
    for name, where in links.items():
        lines.append(f"- [{name}]({where})" if where.startswith("http") else f"- {name}: `{where}`")
    return "\n".join(lines) + "\n"


def speedup_plot(bouts: Sequence[Bout]) -> bytes:
    """A PNG with a line for each problem, from the champion's speedup to the challenger's."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    rows = list(reversed(_in_order(bouts)))
    figure = Figure(figsize=(8, 1.5 + 0.22 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    places = range(len(rows))
    values = {role: [or_reference([skill.speedup])[0] for skill in skills] for role, skills in _skills(rows).items()}
    if len(values) == 2:
        axes.hlines(places, values["champion"], values["challenger"], color="#bbbbbb", linewidth=2, zorder=1)
    for role, speedups in values.items():
        axes.scatter(speedups, places, color=COLOURS[role], label=role, s=28, zorder=2)
    axes.axvline(1.0, color="#666666", linewidth=0.8)
    axes.set_xscale("log", base=2)
    if axes.get_xlim()[1] < FEW_POWERS * axes.get_xlim()[0]:  # powers of two alone would be one or two ticks
        axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.set_yticks(places, [f"{bout.problem_id}{' *' if bout.split is Split.HELD_OUT else ''}" for bout in rows])
    axes.set_xlabel("speedup over eager of the best candidate; 1x where none is correct; * held out")
    axes.legend(loc="best")
    png = io.BytesIO()
    FigureCanvasAgg(figure).print_figure(png, dpi=DPI)
    return png.getvalue()


def _in_order(bouts: Sequence[Bout]) -> list[Bout]:
    return sorted(bouts, key=lambda bout: (bout.split is Split.TRAIN, bout.problem_id))


def _skills(bouts: Sequence[Bout]) -> dict[str, list[Skill]]:
    """By role; a role that nobody has is left out."""
    champions = [bout.champion for bout in bouts if bout.champion is not None]
    skills = {"challenger": [bout.challenger for bout in bouts], "champion": champions}
    return {role: found for role, found in skills.items() if found}


def _in_words(skill: Skill) -> str:
    share = f"{skill.num_correct} of {skill.num_samples} correct"
    if skill.is_unstable:
        return f"unstable, {share}"
    return share if skill.speedup is None else f"{skill.speedup:.3f}x, {share}"


def _summary_rows(split: Split, metrics: Mapping[str, float]) -> list[str]:
    return [
        f"| {split.value} | {role} | {metrics[f'{split}/{role}/share_correct']:.1%} "
        f"| {metrics[f'{split}/{role}/geomean']:.3f}x |"
        for role in COLOURS
        if f"{split}/{role}/geomean" in metrics
    ]
