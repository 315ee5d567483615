"""Several processes that share a model learn what one learns, and end together."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.team_runs import KILLED, NO_STEP

pytestmark = pytest.mark.slow

ZERO_2 = {"processes": 2, "zero_stage": 2}


def run(
    names: str, engine: dict[str, Any], folder: Path, *, killed: str = "", step: int = NO_STEP
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.team_runs", names, json.dumps(engine), str(folder)]
    # Without instructions for bfloat16, to which products would be rounded: sums in other orders are to be equal.
    environment = {
        **os.environ,
        KILLED: f"{killed}:{step}",
        "OMP_NUM_THREADS": "1",
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
    }
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)


def rows(done: subprocess.CompletedProcess[str]) -> dict[str, list[dict[str, Any]]]:
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    return rows(run("sft,grpo", {}, tmp_path_factory.mktemp("alone")))


def assert_alike(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, rel=1e-4) if "texts" not in other else one == other


@pytest.mark.parametrize("zero_stage", [2, 3])
def test_two_processes_learn_what_one_does(tmp_path, alone, zero_stage):
    """Losses, gradients, rewards, weights and every text they wrote, in two trainings one after the other."""
    together = rows(run("sft,grpo", ZERO_2 | {"zero_stage": zero_stage}, tmp_path))
    for name, expected in alone.items():
        assert_alike(together[name], expected)


@pytest.mark.parametrize("zero_stage", [2, 3])
def test_groups_computed_in_parts_have_the_same_gradient_in_two_processes(tmp_path, alone, zero_stage):
    found = rows(run("grpo in parts", ZERO_2 | {"zero_stage": zero_stage}, tmp_path))["grpo in parts"]
    assert [row.pop("rows_at_once", None) for row in found] == [1.0] * 4 + [None]
    assert_alike(found, alone["grpo"])


@pytest.mark.parametrize(("name", "zero_stage"), [("sft", 2), ("sft", 3), ("grpo", 2), ("grpo", 3)])
def test_a_process_that_is_killed_ends_the_run_with_its_name_and_the_next_goes_on(tmp_path, alone, name, zero_stage):
    """Whatever is shared out: optimiser, gradients, weights. Only the texts of steps 3 and 4 are written again."""
    engine = ZERO_2 | {"zero_stage": zero_stage}
    failed = run(name, engine, tmp_path, killed="other", step=3)
    assert failed.returncode != 0
    assert "MachineError: training process 1 of 2 was killed by signal 9" in failed.stderr
    assert (tmp_path / name / "checkpoint-2" / "whole").exists()
    refused = run(name, {}, tmp_path)
    assert "TrainingError" in refused.stderr
    assert f"checkpoint-2 was written under ZeRO-{zero_stage} in 2 processes with offload none" in refused.stderr
    resumed = run(name, engine, tmp_path)
    *found, last = rows(resumed)[name]
    *expected, last_expected = alone[name]
    assert_alike(found, expected)
    if name == "sft":
        assert_alike([last], [last_expected])
    else:
        (begins_step_3,) = [at + 1 for at, text in enumerate(last_expected["texts"]) if text.startswith("2 16 ")]
        assert last["texts"] == last_expected["texts"][begins_step_3:]
    assert "steps done: 3, 4" in resumed.stderr


def test_no_process_outlives_the_first(tmp_path):
    failed = run("sft", ZERO_2, tmp_path, killed="first", step=2)
    assert failed.returncode == -9
    follower = int(failed.stderr.rpartition("follower: ")[2].split()[0])
    deadline = time.monotonic() + 20.0
    while Path(f"/proc/{follower}/cmdline").exists() and b"flows.following" in _command(follower):
        assert time.monotonic() < deadline, "the follower lives on"
        time.sleep(0.1)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
