"""One small history, and its numbers in SQL, in what DVC shows, in MLflow and on the page: the same."""

import json
import math
import re
import subprocess
import sys
from dataclasses import dataclass, field, replace

import pytest
from report_builders import KERNEL, candidate, drawn, made_up_report, problem, verdict
from test_report_page import Outline

from flows.engine import Stage
from flows.publishing import publish
from flows.workspace import make_workspace
from tasks import tracking
from tasks.judge.verdict import Status
from tasks.params import load_params
from tasks.problems.problem import Split
from tasks.report.exploration import StageRecords, explore, history_of
from tasks.report.metrics import DIGITS, flat_metrics, summary_rows, tracked_metrics
from tasks.report.page import render_report
from tasks.report.payload import unpacked
from tasks.report.summary import PolicySample, best_kernels, gains, summarise

EVALUATED = "data/evaluate/metrics.json"
PROBLEMS = [
    problem("level1/relu"),
    problem("level2/gelu"),
    problem("level3/mlp"),
    problem("level1/sum", split=Split.HELD_OUT),
]
SPEEDUPS = {"sft": (None, 1.1, 0.9, None), "contrastive_rl": (3.7, 1.4, None, 2.6)}
"""One sample of each policy for each problem; None is a wrong one."""

BY_POLICY = """
    SELECT policy, split, avg((status = 'correct')::INTEGER) AS correct, exp(avg(ln(speedup))) AS speedup,
           max(speedup) AS best_speedup, count(*) AS num_samples,
           count(DISTINCT problem_id) FILTER (speedup > 1) / count(DISTINCT problem_id) AS fast_1
    FROM stage_samples WHERE stage = 'evaluate' GROUP BY policy, split
"""
BY_STAGE = """
    SELECT stage, status, count(*) FROM (SELECT DISTINCT stage, verdict_id, status FROM stage_verdicts) GROUP BY ALL
"""


@dataclass
class Evaluation:
    """What the stage evaluate has in its hands when it writes its outputs."""

    candidates: list = field(default_factory=list)
    verdicts: list = field(default_factory=list)
    drawn: list = field(default_factory=list)
    samples: list = field(default_factory=list)

    def add(self, policy, step, number, speedup):
        of = PROBLEMS[number]
        written = candidate(of, f"{KERNEL}# {policy}\n", origin=policy)
        found = verdict(written, speedup=speedup, jitter=0.1) if speedup else verdict(written, status=Status.CRASHED)
        self.candidates.append(written)
        self.verdicts.append(found)
        self.drawn.append(drawn(written, step=step, number=number, policy=policy))
        self.samples.append(PolicySample.judged(policy, "sampled", of, written, found, copied=False))


@pytest.fixture(scope="module")
def evaluation():
    made = Evaluation()
    for step, (policy, speedups) in enumerate(SPEEDUPS.items(), start=1):
        for number, speedup in enumerate(speedups):
            made.add(policy, step, number, speedup)
    return made


@pytest.fixture(scope="module")
def data(evaluation):
    return replace(
        made_up_report(),
        problems=PROBLEMS,
        samples=evaluation.samples,
        summary=summarise(evaluation.samples, baselines={}, resamples=50, seed=0),
        gains=gains(evaluation.samples, resamples=50, seed=0),
        kernels=best_kernels(PROBLEMS, evaluation.candidates, evaluation.verdicts),
        baselines={},
    )


@pytest.fixture(scope="module")
def metrics(data):
    """What metrics.json holds."""
    return json.loads(json.dumps(flat_metrics(data.summary, data.kernels, data.gains)))


@pytest.fixture(scope="module")
def history(evaluation, tmp_path_factory):
    records = StageRecords(
        run_id="evaluate-1",
        stage="evaluate",
        candidates=evaluation.candidates,
        verdicts=evaluation.verdicts,
        samples=evaluation.drawn,
    )
    return history_of(PROBLEMS, [records], tmp_path_factory.mktemp("history") / "history.duckdb")


@pytest.fixture(scope="module")
def page(data, history):
    return render_report(data, explore(history))


def same(number):
    return pytest.approx(number, abs=0.5 * 10**-DIGITS)


def test_metrics_are_what_sql_says(metrics, history):
    rows = history.query(BY_POLICY).to_dicts()
    assert len(rows) == 4
    for row in rows:
        numbers = metrics[row["policy"]][row["split"]]["sampled"]
        for name in ("correct", "speedup", "best_speedup", "fast_1"):
            assert numbers.get(name) == (None if row[name] is None else same(row[name])), (row["policy"], name)


def test_the_best_kernels_of_the_metrics_are_those_of_sql(metrics, history):
    speedups = history.query("SELECT speedup FROM best_kernels")["speedup"].to_list()
    solved = len(speedups)
    assert metrics["best_kernels"]["problems"] == len(PROBLEMS)
    assert metrics["best_kernels"]["geomean_speedup"] == same(math.prod(speedups) ** (1 / len(PROBLEMS)))
    assert metrics["best_kernels"]["max_speedup"] == same(max(speedups))
    assert metrics["best_kernels"]["fast_0"] == same(solved / len(PROBLEMS))


def test_rows_of_dvc_plots_are_the_metrics(data, metrics):
    for row in summary_rows(data.summary):
        numbers = metrics[row["policy"]][row["split"]][row["mode"]]
        assert {name: row[name] for name in numbers if name in row} == {n: v for n, v in numbers.items() if n in row}


def test_the_columns_of_the_page_are_what_sql_counts(page, history):
    packed = unpacked(page, "data")
    names, verdicts = packed["names"], packed["verdicts"]
    counted = {}
    for stage, status in zip(verdicts["stage"], verdicts["status"], strict=True):
        key = names["stage"][stage], names["status"][status]
        counted[key] = counted.get(key, 0) + 1
    assert counted == {(stage, status): number for stage, status, number in history.query(BY_STAGE).iter_rows()}
    speedups = sorted(speedup for speedup in verdicts["speedup"] if speedup is not None)
    stored = history.query("SELECT speedup FROM verdicts WHERE speedup IS NOT NULL ORDER BY 1")["speedup"]
    assert speedups == pytest.approx(stored.to_list(), rel=1e-5)


def test_the_leaderboard_of_the_page_is_the_view_of_best_kernels(page, history):
    packed = unpacked(page, "data")
    best = {}
    champions = packed["champions"]
    for problem_code, name, speedup in zip(
        champions["problem"], champions["candidate_id"], champions["speedup"], strict=True
    ):
        held = best.get(packed["names"]["problem"][problem_code])
        if held is None or speedup > held[1]:
            best[packed["names"]["problem"][problem_code]] = name, speedup
    stored = history.query("SELECT problem_id, candidate_id, speedup FROM best_kernels").iter_rows()
    assert best == {name: (of, pytest.approx(speedup, rel=1e-5)) for name, of, speedup in stored}


def test_the_table_of_stages_shows_the_metrics(page, metrics):
    for policy in SPEEDUPS:
        numbers = metrics[policy]["train"]["sampled"]
        row = re.search(rf'<tr\s+data-origin="{policy}" data-split="train"\s*>.*?</tr>', page).group(0)
        correct, speedup = re.search(r">(\d+)% \(.*>([\d.]+)x \(", row).groups()
        assert float(correct) == pytest.approx(100 * numbers["correct"], abs=0.51)
        assert float(speedup) == pytest.approx(numbers["speedup"], abs=0.0051)
    text = " ".join(Outline(page).text.split())
    shown = re.search(r"([\d.]+)x ?best verified kernels", text)
    # Both round the same number, one of them to fewer digits.
    assert float(shown.group(1)) == pytest.approx(metrics["best_kernels"]["geomean_speedup"], abs=0.0051)


@pytest.fixture
def workspace(data, metrics, tmp_path):
    """A workspace of the project with what evaluate writes for DVC, written as the stage does."""
    root = make_workspace(tmp_path / "project", profile="tiny")
    stage = Stage(name="evaluate", params=load_params(), key="", folder=tmp_path, run_id="evaluate-1", started_at=0.0)
    stage.outputs.mkdir()
    stage.write_json("metrics.json", metrics)
    stage.write_csv("stages.csv", summary_rows(data.summary))
    publish(stage.outputs, root / "data" / "evaluate")
    return root


def said_by_dvc(root, *words):
    command = [sys.executable, "-m", "dvc", *words]
    return json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True, timeout=120).stdout)


def test_dvc_shows_the_metrics_and_plots_them(workspace, metrics, history):
    (shown,) = said_by_dvc(workspace, "metrics", "show", "--json", EVALUATED)[""]["data"].values()
    assert shown["data"] == metrics
    for row in history.query(BY_POLICY).to_dicts():
        found = shown["data"][row["policy"]][row["split"]]["sampled"]
        assert found["correct"] == same(row["correct"])
        assert found.get("speedup") == (None if row["speedup"] is None else same(row["speedup"]))
    plot = said_by_dvc(workspace, "plots", "show", "--show-vega", "data/evaluate/stages.csv")
    plotted = {(row["policy"], row["split"], row["mode"]): float(row["correct"]) for row in plot["data"]["values"]}
    assert plotted == {
        (policy, split, "sampled"): metrics[policy][split]["sampled"]["correct"]
        for policy in SPEEDUPS
        for split in ("train", "held_out")
    }


@pytest.mark.slow
def test_mlflow_has_the_metrics(metrics, tmp_path, monkeypatch):
    from mlflow import MlflowClient

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(tracking, "FINISH_S", 120.0)
    flat = tracked_metrics(metrics)
    with tracking.tracked("evaluate", run_id="evaluate-1", params={}) as tracker:
        tracker.log_metrics(flat)
    client = MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    (run,) = client.search_runs([client.get_experiment_by_name(tracking.EXPERIMENT).experiment_id])
    assert run.data.metrics == flat
    assert flat["sft/train/sampled/correct"] == metrics["sft"]["train"]["sampled"]["correct"]
