"""SIGTERM while a real `dvc repro` runs a stage: what listens may finish its checkpoint, all else ends with a word."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from stage_runs import candidate_rows, one_stage, workspace, write_generated, write_taught

from tasks.training.checkpoints import checkpointed_steps

LIMIT_S = 90.0
KEPT = "sft failed: the machine asked this process to end (SIGTERM); what was done until now is kept"
STAGE = """
import pathlib, signal, sys, time
from flows.engine import run_stage
from tasks.errors import PreemptedError

def listen(stage):
    asked = []
    before = signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
    pathlib.Path("ready").touch()
    while not asked:
        time.sleep(0.05)
    time.sleep(2)
    pathlib.Path("checkpoint").touch()
    signal.signal(signal.SIGTERM, before)
    raise PreemptedError("asked to end, and saved")

def work(stage):
    pathlib.Path("ready").touch()
    time.sleep(100)

run_stage("sft", {"listen": listen, "work": work}[sys.argv[1]])
"""


def until(found: Callable[[], Any]) -> Any:
    end = time.monotonic() + LIMIT_S
    while not (result := found()):
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.1)
    return result


class Repro:
    """`dvc repro` of one stage in a session of its own, and what it says."""

    def __init__(self, root: Path, stage: str) -> None:
        self._log = root / "said.log"
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        variables = {"PATH": path, "PYTHONPATH": str(Path(__file__).parents[1])}
        self._dvc = subprocess.Popen(
            [sys.executable, "-m", "dvc", "repro", "--single-item", stage],
            cwd=root,
            env={name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"} | variables,
            stdout=self._log.open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def said(self) -> str:
        return self._log.read_text()

    def ask_to_end(self, whom: str) -> None:
        """And wait until nothing is left of it."""
        everyone = [psutil.Process(self._dvc.pid), *psutil.Process(self._dvc.pid).children(recursive=True)]
        if whom == "dvc":
            self._dvc.terminate()
        elif whom == "everyone":
            os.killpg(self._dvc.pid, signal.SIGTERM)
        else:
            next(each for each in everyone if each.cmdline()[0].startswith("python")).terminate()
        self._dvc.wait(LIMIT_S)
        until(lambda: not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in everyone))


@pytest.mark.parametrize(
    ("mode", "whom", "said"),
    [
        ("listen", "dvc", "asked to end, and saved"),
        ("listen", "everyone", "asked to end, and saved"),
        ("work", "dvc", KEPT),
        ("work", "stage", KEPT),
    ],
)
def test_a_stage_ends_with_a_word_and_in_its_own_time(tmp_path, mode, whom, said):
    one_stage(tmp_path)
    (tmp_path / "stage.py").write_text(STAGE)
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc" / "config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
    stages = yaml.safe_load((tmp_path / "dvc.yaml").read_text())
    stages["stages"]["sft"]["cmd"] = f"python stage.py {mode}"
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump(stages))
    repro = Repro(tmp_path, "sft")
    until((tmp_path / "ready").exists)
    repro.ask_to_end(whom)
    assert said in repro.said
    assert (tmp_path / "checkpoint").exists() == (mode == "listen")
    assert ("exited with 143" in repro.said) == (whom == "stage")


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["dvc", "everyone"])
def test_training_writes_its_checkpoint_and_the_next_repro_goes_on_from_it(tmp_path, whom):
    root = workspace(tmp_path, sft__steps=4000)
    write_generated(root, candidate_rows())
    write_taught(root)
    done = [0]
    for _ in range(2):
        repro = Repro(root, "sft")
        until(lambda: re.search(r"[1-9]\d*/4000 ", repro.said))  # noqa: B023 - called at once
        repro.ask_to_end(whom)
        assert "sft failed: the machine asked this process to end (SIGTERM)" in repro.said
        (folder,) = root.glob("work/sft/*/checkpoints")
        done.append(checkpointed_steps(folder))
    assert "continuing the run that was interrupted" in repro.said
    assert done == sorted(set(done))
