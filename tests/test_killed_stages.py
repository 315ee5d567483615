"""Each stage is killed at random moments; the next `dvc repro` finishes, and nothing is lost, doubled or left over.

KILLS=10 python -m pytest tests/test_killed_stages.py   kills each stage ten times instead of once.
"""

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

from flows.stages import STAGES
from flows.workspace import make_workspace
from tasks.history.store import History

KILLS = int(os.environ.get("KILLS", "1"))
LONGEST_S = 12.0
PATIENCE_S = 20.0
JUDGING = {"filter_variants", "self_supervised", "contrastive_rl", "evaluate"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240 * (1 + KILLS))]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return make_workspace(tmp_path_factory.mktemp("killed") / "project", profile="tiny")


def repro(workspace: Path, stage: str, *flags: str) -> subprocess.Popen:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # dvc starts stages as `python`
    environment = os.environ | {"KILLED_TEST": str(workspace), "PATH": path}
    environment.pop("PREFECT_API_URL", None)
    return subprocess.Popen(
        [sys.executable, "-m", "dvc", "repro", "--single-item", *flags, stage],
        cwd=workspace,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def left_over(workspace: Path) -> list[str]:
    """Processes that stem from the workspace: by their environment, or as judges' processes by their working folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            folder = os.readlink(process / "cwd")
        except OSError:
            continue
        if f"KILLED_TEST={workspace}".encode() in environment or folder.startswith(str(workspace)):
            found.append(command)
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


def wait_until_gone(workspace: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while left := left_over(workspace):
        assert time.monotonic() < deadline, f"still running {PATIENCE_S} s after the kill: {left}"
        time.sleep(0.2)


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_stage_is_finished_by_the_next_repro(workspace, stage):
    rng = random.Random(f"{stage}{KILLS}")
    for _ in range(KILLS):
        longest_s = LONGEST_S
        while not is_killed(workspace, stage, after_s=rng.uniform(0.3, longest_s), of_dvc=rng.random() < 0.5):
            longest_s /= 2  # it was done before: strike earlier
        wait_until_gone(workspace)
    final = repro(workspace, stage)
    said, _ = final.communicate(timeout=230)
    assert final.returncode == 0, said.decode()[-3000:]
    wait_until_gone(workspace)
    assert not list((workspace / "data" / stage).glob(".*.partial"))
    if stage in JUDGING:
        check_records(workspace, stage)


def check_records(workspace: Path, stage: str) -> None:
    """Every verdict of the stage stands once in its output and once in the history, with its text."""
    rows = [json.loads(line) for line in (workspace / "data" / stage / "verdicts.jsonl").read_text().splitlines()]
    assert rows
    assert max(Counter(row["candidate_id"] for row in rows).values()) == 1
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
    assert {row["candidate_id"] for row in rows} <= {candidate_id for _, candidate_id in times}
