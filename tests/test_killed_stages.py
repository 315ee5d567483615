"""Each stage is killed at random moments; the next `dvc repro` finishes, and nothing is lost, doubled or left over.

KILLS=10 python -m pytest tests/test_killed_stages.py   kills each stage ten times instead of once.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml
from safetensors import safe_open

from flows.stages import STAGES
from flows.workspace import make_workspace
from tasks.history.store import History
from tasks.judge.processes import descendants
from tasks.judge.walls import system
from tasks.report.metrics import tracked_metrics
from tasks.tracking import EXPERIMENT, RUN_ID_TAG

KILLS = int(os.environ.get("KILLS", "1"))
LONGEST_S = 12.0
PATIENCE_S = 20.0
BATCHES = {"self_supervised": 2, "evaluate": 6}
"""Stages that sample, and in how many batches: each iteration, or each policy greedily and not."""
JUDGING = {"filter_variants", "self_supervised", "contrastive_rl", "evaluate"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240 * (1 + KILLS))]


FROM_BEFORE: set[int] = set()
"""Children of ours that other tests have started and that live on, such as a tracker of shared memory."""


@pytest.fixture(scope="module", autouse=True)
def orphans_are_ours():
    """Have the kernel hand us, instead of the first process of all, what loses its parent below us."""
    FROM_BEFORE.update(descendants(os.getpid()))
    system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)
    yield
    system.prctl(system.PR_SET_CHILD_SUBREAPER, 0)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return make_workspace(tmp_path_factory.mktemp("killed") / "project", profile="tiny")


def repro(workspace: Path, stage: str, *flags: str) -> subprocess.Popen:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # dvc starts stages as `python`
    environment = os.environ | {"PATH": path}
    environment.pop("PREFECT_API_URL", None)
    return subprocess.Popen(
        [sys.executable, "-m", "dvc", "repro", "--single-item", *flags, stage],
        cwd=workspace,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def left_over() -> list[str]:
    """Processes that stem from a stage, in whatever session, namespace or folder: our children's children.

    Orphans among them become our own children, and are reaped here once they have ended.
    """
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            parents[int(stat.parent.name)] = (int(parent), state)
    ours = {os.getpid()}
    while more := {pid for pid, (parent, _) in parents.items() if parent in ours} - ours:
        ours |= more
    found = []
    for pid in ours - {os.getpid(), *FROM_BEFORE}:
        if parents[pid] == (os.getpid(), "Z"):
            os.waitpid(pid, 0)
        else:
            with contextlib.suppress(OSError):
                found.append(f"{pid} {Path(f'/proc/{pid}/cmdline').read_bytes().replace(bytes(1), b' ').decode()}")
    return found


def is_killed(workspace: Path, stage: str, *, after_s: float, of_dvc: bool) -> bool:
    """Start the stage, kill dvc or the stage's own process at a moment; whether it was still running then."""
    process = repro(workspace, stage, "--force")
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        os.kill(process.pid if of_dvc else stage_process(process.pid) or process.pid, signal.SIGKILL)
        process.communicate()
        return True
    process.communicate()
    return False


def stage_process(dvc: int) -> int | None:
    """The python process below dvc that runs the stage, if it has started."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            parents = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if b"flows." in command and command.startswith(b"python") and os.getsid(int(process.name)) == dvc:
            return int(process.name) if parents[0] != "Z" else None
    return None


def wait_until_gone() -> None:
    deadline = time.monotonic() + PATIENCE_S
    while left := left_over():
        assert time.monotonic() < deadline, f"still running {PATIENCE_S} s after the kill: {left}"
        time.sleep(0.2)


def ids(path: Path) -> list[str]:
    """The candidates that the whole lines of a file are about."""
    return [json.loads(line)["candidate_id"] for line in path.read_bytes().split(b"\n")[:-1]]


def journalled(workspace: Path, stage: str) -> set[str]:
    """The candidates that the stage has judged by now, in the run that the next one continues."""
    return {name for path in (workspace / "work" / stage).glob("*/verdicts.jsonl") for name in ids(path)}


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_stage_is_finished_by_the_next_repro(workspace, stage):
    rng = random.Random(f"{stage}{KILLS}")
    judged: set[str] = set()
    for _ in range(KILLS):
        longest_s = LONGEST_S
        while not is_killed(workspace, stage, after_s=rng.uniform(0.3, longest_s), of_dvc=rng.random() < 0.5):
            longest_s /= 2  # it was done before: strike earlier
        wait_until_gone()
        judged |= journalled(workspace, stage)
    subprocess.run([sys.executable, "-m", "flows.dvc_lock"], cwd=workspace, check=True)  # as `make repro` does
    final = repro(workspace, stage)
    said, _ = final.communicate(timeout=230)
    assert final.returncode == 0, said.decode()[-3000:]
    wait_until_gone()
    check_outputs(workspace / "data" / stage)
    if stage in JUDGING:
        check_records(workspace, stage, judged)
    check_account(workspace, stage)


def check_outputs(folder: Path) -> None:
    """Nothing half-written is there or is taken for a whole output."""
    assert not list(folder.glob(".*.partial"))
    assert json.loads((folder / "metrics.json").read_text())
    for weights in folder.glob("policy/*.safetensors"):
        with safe_open(weights, framework="pt") as tensors:  # which refuses a file of another length than it tells
            assert list(tensors.keys())


def check_records(workspace: Path, stage: str, judged: set[str]) -> None:
    """Every verdict of the stage stands once in its output and once in the history, with its text; none is missing.

    Args:
        judged: the candidates that had a verdict when the stage was killed.
    """
    found = ids(workspace / "data" / stage / "verdicts.jsonl")
    assert found
    assert len(found) == len(set(found))
    if stage != "evaluate":  # which knows some of its candidates' verdicts from earlier stages
        source = "generate_variants" if stage == "filter_variants" else stage
        assert set(ids(workspace / "data" / source / "candidates.jsonl")) == set(found)
    history = History(workspace / "data" / "history.duckdb")
    stored = history.query(
        "SELECT runs.run_id, candidate_id, source FROM verdicts JOIN candidates USING (candidate_id) "
        "JOIN run_verdicts USING (verdict_id) JOIN runs ON runs.run_id = run_verdicts.run_id WHERE stage = ?",
        [stage],
    )
    # By run: a stage that was finished before the kill is run again from its start, as a run of its own.
    times = Counter(zip(stored["run_id"], stored["candidate_id"], strict=True))
    if stage != "evaluate":  # which judges its contenders a second time on purpose
        assert max(times.values()) == 1
    assert {*found, *judged} <= {candidate_id for _, candidate_id in times}


def check_account(workspace: Path, stage: str) -> None:
    """What the last run spent stands once in the history, and its outputs are named as DVC has noted them."""
    history = History(workspace / "data" / "history.duckdb")
    account = json.loads((workspace / "data" / stage / "run.json").read_text())
    run_id = account["run"]["run_id"]
    spent = history.query("SELECT purpose, seconds, spent_at FROM costs WHERE run_id = ?", [run_id])
    assert len(spent) == len(account["costs"])
    assert spent["seconds"].sum() == pytest.approx(sum(cost["seconds"] for cost in account["costs"]))
    if stage in BATCHES:
        assert Counter(spent["purpose"])["generation"] == BATCHES[stage]
    noted = yaml.safe_load((workspace / "dvc.lock").read_text())["stages"][stage]["outs"]
    named = {f"{out['path']}@{out['md5']}" for out in noted if not out["path"].endswith("run.json")}
    linked = history.query("SELECT identifier FROM run_links WHERE system = 'dvc' AND run_id = ?", [run_id])
    assert named <= set(linked["identifier"])  # an attempt that was killed at its end may have named others


def test_the_numbers_of_a_finished_pipeline_are_the_same_everywhere(workspace):
    """After the tests above: in what DVC shows, in MLflow, in SQL, and in a history made again from the outputs."""
    from mlflow import MlflowClient

    with repro(workspace, STAGES[-1]) as process:
        process.communicate()
    shown = subprocess.run(
        [sys.executable, "-m", "dvc", "metrics", "show", "--json"], cwd=workspace, check=True, capture_output=True
    )
    metrics = {name: found["data"] for name, found in json.loads(shown.stdout)[""]["data"].items()}
    assert metrics.keys() == {f"data/{stage}/metrics.json" for stage in STAGES}
    history = History(workspace / "data" / "history.duckdb")
    run_id = json.loads((workspace / "data/evaluate/run.json").read_text())["run"]["run_id"]
    found = history.query(
        "SELECT policy, split, if(temperature = 0, 'greedy', 'sampled') AS mode, "
        "avg((status = 'correct')::INTEGER) AS correct FROM stage_samples WHERE run_id = ? GROUP BY ALL",
        [run_id],
    )
    assert len(found) >= 6
    for policy, split, mode, correct in found.iter_rows():
        assert metrics["data/evaluate/metrics.json"][policy][split][mode]["correct"] == pytest.approx(correct, abs=1e-4)
    for folder in workspace.glob("mlruns/pending/*"):  # what a busy machine has not sent in time
        subprocess.run([sys.executable, "-m", "tasks.tracking", str(folder)], cwd=workspace, check=True)
    sent = MlflowClient(f"sqlite:///{workspace}/mlflow.db")
    (run,) = sent.search_runs(
        [sent.get_experiment_by_name(EXPERIMENT).experiment_id], f"tags.`{RUN_ID_TAG}` = '{run_id}'"
    )
    assert run.data.metrics == tracked_metrics(metrics["data/evaluate/metrics.json"])
    again = workspace / "again.duckdb"
    rebuild = [sys.executable, "-m", "flows.cli", "history", "rebuild", "--out", str(again)]
    subprocess.run(rebuild, cwd=workspace, check=True, capture_output=True)
    # Not the latest runs: one that was killed later may have been finished by the outputs that DVC had kept of another.
    accounts = [json.loads((workspace / "data" / stage / "run.json").read_text()) for stage in STAGES]
    runs = [[account["run"]["run_id"] for account in accounts]]
    for table in ("costs", "run_links"):
        rows = f"FROM {table} WHERE run_id IN (SELECT unnest(?)) ORDER BY ALL"
        assert History(again).query(rows, runs).rows() == history.query(rows, runs).rows()


def test_a_process_left_over_by_an_orphan_would_be_noticed():
    shell = "setsid sh -c 'cd / && exec env -i sleep 30' & exit"
    subprocess.run(["sh", "-c", shell], check=True)
    deadline = time.monotonic() + PATIENCE_S
    while not (left := [words for words in left_over() if words.endswith("sleep 30 ")]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(int(left[0].split()[0]), signal.SIGKILL)
    wait_until_gone()
