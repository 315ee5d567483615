"""Stage evaluate: all three policies, greedy and sampled, train and held out, against the baselines; and the report.

DVC runs this as ``python -m flows.evaluate``; so can you.
"""

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, get_args

from rich.console import Console

from flows.engine import DATA, Stage, run_stage, say
from flows.parts.accounting import Expenses, accounted
from flows.parts.contenders import fastest_first, time_again
from flows.parts.judging import Court, court
from flows.parts.records import read_candidates, read_taught, read_verdicts
from flows.parts.sampling import Draw, as_samples, build_requests, draw
from flows.parts.timed_baselines import time_baselines
from tasks.history.records import Sample
from tasks.judge.baselines import baseline_candidate, usable_baselines
from tasks.judge.timing import protocol_of
from tasks.judge.verdict import Status, Verdict
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Problem, Split
from tasks.report import plots
from tasks.report.exploration import Exploration, StageRecords, explore, history_of
from tasks.report.kernel_tables import kernel_table
from tasks.report.metrics import flat_metrics, summary_rows, tracked_metrics
from tasks.report.page import ReportData, render_report
from tasks.report.summary import BestKernel, Mode, PolicySample, best_kernels, gains, summarise
from tasks.report.tables import TextTable, stage_table, to_markdown, to_rich
from tasks.variants.candidate import Candidate

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

POLICIES = ("sft", "self_supervised", "contrastive_rl")
JUDGED_BEFORE = ("filter_variants", "self_supervised", "contrastive_rl")
TIMED_AGAIN = "timed-again"

Drawn = Mapping[tuple[str, Mode], Sequence[Draw]]


def evaluate(stage: Stage) -> None:
    """Write the samples, their candidates and verdicts, the contenders' verdicts, metrics and the report."""
    params = stage.params
    baselines_asked = usable_baselines(params.judge.device, params.evaluate.baselines)
    problems = load_problems(params.problems)
    earlier = read_verdicts(*JUDGED_BEFORE)
    # A correct text is timed afresh: the timing that got it taught, shown or rewarded was, likely, a lucky one.
    failures = [verdict for verdict in earlier if not verdict.is_correct]
    with accounted(stage, problems) as (tracker, expenses):
        by_policy = {policy: _draw(stage, policy, problems, expenses) for policy in POLICIES}
        drawn = {(policy, mode): draws for policy, modes in by_policy.items() for mode, draws in modes.items()}
        with court(stage, problems, known=failures) as judges:
            samples = _judge_samples(drawn, problems, judges)
            baselines = time_baselines(baselines_asked, problems, judges)
            judged = [*earlier, *judges.own.values()]
        kernels, contenders = _time_contenders(stage, problems, drawn, judged)
        unfit = {verdict.problem_id for verdict in judged if verdict.status is Status.BAD_PROBLEM}
        data = _report_data(stage, problems, samples, kernels, baselines, unfit)
        exploration = _explored(stage, problems, drawn, list(judges.own.values()), contenders)
        metrics = flat_metrics(data.summary, kernels, data.gains)
        tracker.log_metrics(tracked_metrics(metrics))
        stage.write_rows("samples.jsonl", map(asdict, samples))
        stage.write_rows("verdicts.jsonl", (verdict.to_json() for verdict in judges.own.values()))
        stage.write_rows("contenders.jsonl", (verdict.to_json() for verdict in contenders))
        stage.write_rows("candidates.jsonl", (candidate.to_json() for candidate in _distinct(drawn)))
        stage.write_csv("stages.csv", summary_rows(data.summary))
        stage.write_json("metrics.json", metrics)
        page = stage.outputs / "report.html"
        page.write_text(render_report(data, exploration))
        tracker.log_artifact(page)
        for name, figure in _figures(data).items():
            tracker.log_figure(figure, name)
        (stage.outputs / "report.md").write_text("\n\n".join(map(to_markdown, _tables(data))) + "\n")
    for table in _tables(data):
        Console(stderr=True).print(to_rich(table))


def _draw(stage: Stage, name: str, problems: Mapping[str, Problem], expenses: Expenses) -> dict[Mode, list[Draw]]:
    """Completions of one policy for every problem, by mode. Every policy answers the same prompts."""
    from tasks.training.policy import load_policy, writable

    params = stage.params.evaluate
    policy = load_policy(DATA / name / "policy", stage.params.policy)
    taught = writable(policy, read_taught())
    draws: dict[Mode, list[Draw]] = {}
    for mode in get_args(Mode):
        requests = build_requests(
            policy,
            problems.values(),
            taught,
            stage.params.exemplars,
            each=1 if mode == "greedy" else params.samples_per_problem,
            exemplar_share=params.exemplar_share,
            seed=stage.params.seed,
        )
        temperature = None if mode == "greedy" else params.temperature
        draws[mode] = draw(
            stage,
            policy,
            requests,
            name=f"{name}-{mode}",
            origin=name,
            temperature=temperature,
            seed=stage.params.seed,
            expenses=expenses,
        )
    return draws


def _judge_samples(drawn: Drawn, problems: Mapping[str, Problem], judges: Court) -> list[PolicySample]:
    candidates = _distinct(drawn)
    judges.recover(candidates)
    judges.judge(candidates, desc="judging samples")
    samples = []
    for step, ((policy, mode), draws) in enumerate(drawn.items(), start=1):
        verdicts = judges.judge([drawing.candidate for drawing in draws])
        judges.record_samples(as_samples(draws, policy=policy, step=step))
        samples += [
            PolicySample.judged(
                policy,
                mode,
                problems[verdict.problem_id],
                drawing.candidate,
                verdict,
                copied=drawing.candidate.candidate_id in drawing.request.exemplar_ids,
            )
            for drawing, verdict in zip(draws, verdicts, strict=True)
        ]
    return samples


def _time_contenders(
    stage: Stage, problems: Mapping[str, Problem], drawn: Drawn, judged: Iterable[Verdict]
) -> tuple[list[BestKernel], list[Verdict]]:
    """The best kernel of every problem by a fresh timing of its few fastest, one at a time; and those timings.

    The fastest of many noisy timings is a lucky one; only a second look at it tells what it is worth.
    """
    stages = ("generate_variants", "self_supervised", "contrastive_rl")
    known = [candidate for name in stages for candidate in read_candidates(name)]
    known += _distinct(drawn)
    texts = {candidate.candidate_id: candidate for candidate in reversed(known)}
    waiting = fastest_first(texts, judged)
    with court(stage, problems, journal="contenders.jsonl", workers=1) as judges:
        judges.recover(candidate for of_problem in waiting.values() for candidate in of_problem)
        contenders, verdicts = time_again(
            waiting,
            lambda batch: judges.judge(batch, desc="timing the best again"),
            at_once=stage.params.evaluate.contenders_per_problem,
        )
    return best_kernels(problems.values(), contenders, verdicts), verdicts


def _distinct(drawn: Drawn) -> list[Candidate]:
    """Each text that was drawn, once, from whoever drew it first."""
    drawings = [drawing for draws in drawn.values() for drawing in draws]
    return list({drawing.candidate.candidate_id: drawing.candidate for drawing in reversed(drawings)}.values())


def _report_data(
    stage: Stage,
    problems: Mapping[str, Problem],
    samples: Sequence[PolicySample],
    kernels: Sequence[BestKernel],
    baselines: Mapping[str, Mapping[str, float]],
    unfit: Collection[str],
) -> ReportData:
    params = stage.params
    resamples = params.evaluate.bootstrap
    timed = next((kernel.verdict for kernel in kernels if kernel.verdict), None)
    return ReportData(
        problems=list(problems.values()),
        samples=samples,
        summary=summarise(samples, baselines=baselines, resamples=resamples, seed=params.seed),
        gains=gains(samples, resamples=resamples, seed=params.seed),
        kernels=kernels,
        curves={name: _read_curve(DATA / name / "curve.csv") for name in POLICIES},
        baselines=baselines,
        unfit=unfit,
        params=stage.sections,
        environment=timed.environment if timed else {},
        device=timed.device if timed else params.judge.device,
        protocol=protocol_of(device=params.judge.device, tier=params.judge.tier),
        resamples=resamples,
        seed=params.seed,
    )


def _explored(
    stage: Stage, problems: Mapping[str, Problem], drawn: Drawn, own: Sequence[Verdict], contenders: Sequence[Verdict]
) -> Exploration:
    """Every verdict of every stage, from stage outputs alone: data/history.duckdb is never a stage's input."""
    texts = dict(zip(JUDGED_BEFORE, ("generate_variants", "self_supervised", "contrastive_rl"), strict=True))
    baselines = usable_baselines(stage.params.judge.device, stage.params.evaluate.baselines)
    texts_drawn = _distinct(drawn)
    texts_drawn += [baseline_candidate(problem, name) for problem in problems.values() for name in baselines]
    samples: list[Sample] = []
    for step, ((policy, _), draws) in enumerate(drawn.items(), start=1):
        samples += as_samples(draws, policy=policy, step=step)
    runs = [
        *(
            StageRecords(run_id=name, stage=name, candidates=read_candidates(texts[name]), verdicts=read_verdicts(name))
            for name in JUDGED_BEFORE
        ),
        StageRecords(run_id=stage.name, stage=stage.name, candidates=texts_drawn, verdicts=own, samples=samples),
        StageRecords(run_id=TIMED_AGAIN, stage=stage.name, verdicts=contenders),
    ]
    with TemporaryDirectory() as folder:
        history = history_of(problems.values(), runs, Path(folder) / "history.duckdb")
        return explore(history, timed_again=TIMED_AGAIN)


def _read_curve(path: Path) -> list[dict[str, float]]:
    with path.open(newline="") as file:
        return [{name: float(value) for name, value in row.items() if value} for row in csv.DictReader(file)]


def _tables(data: ReportData) -> list[TextTable]:
    quoted = {"device": data.device, "protocol": data.protocol}
    return [kernel_table(data.kernels, **quoted), stage_table(data.summary, **quoted)]


def _figures(data: ReportData) -> "dict[str, Figure]":
    """The plots MLflow gets beside the whole page."""
    figures = {"best_kernels": plots.kernel_dots(data.kernels, baselines=data.baselines)}
    for split in Split:
        for name, figure in (
            ("shares", plots.progress_bars(data.summary, split=split)),
            ("speed", plots.speed_curve(data.samples, split=split)),
        ):
            if figure is not None:
                figures[f"{name}_{split}"] = figure
    return figures


if __name__ == "__main__":
    run_stage("evaluate", evaluate)
    say(f"report: {DATA / 'evaluate' / 'report.html'}")
