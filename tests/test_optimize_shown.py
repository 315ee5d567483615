"""What `cuda-l1 optimize` shows on the way: on a terminal and elsewhere it is never silent about what it is doing."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from flows.optimizing.display import Display
from flows.optimizing.judging import Record
from tasks.judge.verdict import Status
from tasks.search.clock import Clock
from tasks.search.search import Progress
from tests.optimize_builders import GivenJudges, by_recipe, optimized, softmax_file
from tests.test_optimize_command import SLOW

ROOT = Path(__file__).parents[1]


def test_elsewhere_every_step_is_a_line_and_no_silence_is_long(capsys: pytest.CaptureFixture[str]) -> None:
    with Display(Console(file=io.StringIO()), seconds=60.0, silence_s=0.2) as display:
        display.begin("starting the judge")
        time.sleep(0.5)
        display.watch(Clock())
        display.begin("screening candidates")
        display.show(Progress())
        time.sleep(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["0 s: starting the judge", "0 s: still starting the judge"]
    assert "0 s: screening candidates" in lines or "1 s: screening candidates" in lines
    assert lines[-1].endswith("s: still screening candidates: 0 judged, 0 refused, 0 of 60 s")


def test_elsewhere_a_new_best_is_a_line_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = optimized(softmax_file(tmp_path), GivenJudges(by_recipe(call_softmax=3.0)))
    with Display(Console(file=io.StringIO()), seconds=60.0) as display:
        for _ in range(2):
            display.show(outcome.progress)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("0 s: 3.00x by call_softmax (")


def test_on_a_terminal_the_seconds_go_on_while_nothing_happens() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, force_interactive=True, width=100, color_system=None)
    with Display(console, seconds=60.0) as display:
        display.begin("starting the judge")
        display.watch(Clock())
        display.begin("screening candidates")
        display.show(Progress())
        time.sleep(3.2)
        display.interrupt()
        time.sleep(1.1)
    shown = screen.getvalue()
    assert len(set(re.findall(r"\d+ of 60 s", shown))) >= 3
    assert "screening candidates; Ctrl-C keeps the best so far" in shown
    assert "screening candidates; Ctrl-C ends at once" in shown


def test_a_table_counts_what_did_not_settle_apart(tmp_path: Path) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, force_interactive=True, width=100, color_system=None)
    speeds = by_recipe(call_softmax=3.0, call_softmax_drop_in=Status.UNSTABLE)
    outcome = optimized(softmax_file(tmp_path), GivenJudges(speeds))
    with Display(console, seconds=60.0) as display:
        display.show(outcome.progress)
        time.sleep(1.2)
    assert "judged, 0 refused, 1 not settled" in screen.getvalue()


def test_every_step_after_the_search_is_told_and_none_that_is_known_already(tmp_path: Path) -> None:
    file, steps = softmax_file(tmp_path), list[str]()
    judges = GivenJudges(by_recipe(call_softmax=3.0, reduction_in_c=2.99, compile=1.5))
    record = Record(tmp_path, [])
    optimized(file, judges, record=record, window_s=5.0, on_step=steps.append)
    record.close()
    assert steps[:2] == ["screening candidates", "looking at the fastest again"]
    assert "judging the drop-in of call_softmax" in steps
    assert steps[3] == "comparing what its calls return and leave behind"
    long = "timing the drop-in in a window of 5 s, besides checking and compiling it"
    assert steps[-3:] == ["timing the baseline compile", long, "comparing its gradients"]
    steps.clear()
    optimized(file, judges, record=Record(tmp_path, []), window_s=5.0, on_step=steps.append)
    assert steps == ["screening candidates", "looking at the fastest again"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "slow.py").write_text(
        SLOW.replace("return torch.randn", "__import__('time').sleep(60); return torch.randn")
    )
    return tmp_path


def test_ctrl_c_before_the_search_says_that_nothing_is_written(folder: Path) -> None:
    command = [sys.executable, "-m", "flows.cli", "optimize", "slow.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, env=environment, cwd=folder, start_new_session=True
    ) as process:
        assert process.stderr is not None
        assert b"s: calling Slow of slow.py on its example inputs" in process.stderr.readline()
        time.sleep(1.0)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        said = process.stderr.read().decode()
        assert process.wait(timeout=60) == 130
    assert said == "interrupted before anything was judged; nothing is written\n"
    assert [path.name for path in folder.iterdir()] == ["slow.py"]
