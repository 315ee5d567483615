"""`cuda-l1 optimize`: what it takes, what it writes and how it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows.cli import main

SLOW = """import torch
from torch import nn


class Slow(nn.Module):
    def forward(self, x):
        total = torch.zeros_like(x[:, 0])
        for column in range(x.shape[1]):
            total = total + x[:, column]
        return total


def example_inputs():
    return torch.randn(8, 300)
"""
FAST = """from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(1)
"""
EARLIER = "# Written by cuda-l1 optimize.\n\n\nclass Slow(ReferenceSlow):\n    pass\n"
QUICK = ["--baselines", "eager", "--window-s", "0", "--workers", "1"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a slow module and with candidates for it."""
    (tmp_path / "slow.py").write_text(SLOW)
    candidates = tmp_path / "candidates"
    candidates.mkdir()
    (candidates / "sum.py").write_text(FAST)
    (candidates / "wrong.py").write_text(FAST.replace("sum(1)", "sum(0)"))
    (candidates / "broken.py").write_text("class\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_candidates_from_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The fast one is a hundred times as fast; should the machine be too busy to know even that, nothing is claimed."""
    status = main(["optimize", "slow.py", "--provider", "candidates", *QUICK])
    said = capsys.readouterr()
    out = folder / "slow-optimized"
    report = (out / "report.md").read_text()
    assert "wrong_output" in report
    assert "compile_error" in report
    verdict = json.loads((out / "verdict.json").read_text())
    assert status == (0 if verdict["faster"] else 4)
    assert (out / "slow.py").exists() is verdict["faster"]
    assert said.out.startswith("# Slow of slow.py")
    if verdict["faster"]:
        assert verdict["recipe"] == ["sum"]
        assert "class Slow(ReferenceSlow)" in (out / "slow.py").read_text()
    judged = (out / "journal.jsonl").read_bytes()
    assert main(["optimize", "slow.py", "--provider", "candidates", *QUICK]) == status
    assert (out / "journal.jsonl").read_bytes() == judged  # nothing was asked twice


def test_nothing_faster_takes_an_older_drop_in_away_and_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "candidates" / "sum.py").unlink()
    out = folder / "out"
    out.mkdir()
    (out / "slow.py").write_text(EARLIER)
    arguments = ["optimize", "slow.py:Slow", "--provider", "candidates", "--out", "out", *QUICK]
    assert main(arguments) == 4
    assert not (out / "slow.py").exists()
    assert json.loads((out / "verdict.json").read_text())["verdict"] is None
    assert "out/slow.py, the drop-in of an earlier run, is removed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        pytest.param(["none.py"], 2, "there is no none.py", id="no file"),
        pytest.param(["no:ne.py"], 2, "there is no no:ne.py", id="no file with a colon"),
        pytest.param(["."], 2, ". is a folder; name a file", id="a folder"),
        pytest.param([""], 2, ". is a folder; name a file", id="nothing"),
        pytest.param(["slow.py:Fast"], 1, "defines no module Fast; it has: Slow", id="no class"),
        pytest.param(
            ["slow.py", "--provider", "nowhere"], 2, "neither builtin nor compiler nor a folder", id="no provider"
        ),
        pytest.param(["slow.py", "--out", "."], 2, "which would be overwritten", id="out is where the file is"),
        pytest.param(["slow.py", "--baselines", "eager", "cuda_graph"], 3, "it needs CUDA; leave it out", id="no GPU"),
        pytest.param(["slow.py", "--out", "slow.py"], 2, "--out slow.py cannot be made a folder", id="out is a file"),
        pytest.param(["slow.py", "--out", "slow.py/x"], 2, "cannot be made a folder", id="out lies under a file"),
        pytest.param(["slow.py", "--out", "/proc/xyz"], 2, "cannot be made a folder", id="out cannot be made"),
        pytest.param(["slow.py", "--window-s", "nan"], 2, "neither 0 nor a number of seconds", id="no number"),
        pytest.param(["slow.py", "--window-s", "-1"], 2, "neither 0 nor a number of seconds", id="negative window"),
        pytest.param(["slow.py", "--minutes", "0"], 2, "not a number of minutes", id="no time"),
        pytest.param(["slow.py", "--device", "gpu"], 2, "neither cpu nor cuda:N", id="unknown device"),
        pytest.param(["slow.py", "--precision", "fp16"], 2, "invalid choice", id="precision under autocast"),
        pytest.param(["slow.py", "--candidates", "-1"], 2, "not a number above 0", id="negative"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, words: str
) -> None:
    try:
        found = main(["optimize", *arguments])
    except SystemExit as ended:
        found = int(ended.code or 0)
    assert found == status
    assert words in capsys.readouterr().err
    assert not (folder / "slow-optimized").exists()


@pytest.mark.parametrize(
    ("name", "is_any_faster"),
    [pytest.param("a:b.py", False, id="a:b.py"), pytest.param("a:b.py:Slow", True, id="a:b.py:Slow")],
)
def test_a_file_with_a_colon_in_its_name_can_be_used(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, is_any_faster: bool
) -> None:
    """Once to the end of a search that finds nothing, which is the quicker one."""
    (folder / "a:b.py").write_text(SLOW)
    if not is_any_faster:
        (folder / "candidates" / "sum.py").unlink()
    status = main(["optimize", name, "--provider", "candidates", "--out", "out", *QUICK])
    assert status in (0, 4), capsys.readouterr().err
    assert (folder / "out" / "report.md").read_text().startswith("# Slow of a:b.py")


def test_a_module_that_draws_random_numbers_is_refused_with_the_remedy(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "slow.py").write_text(SLOW.replace("return total", "return total + torch.rand(8)"))
    assert main(["optimize", "slow.py", "--provider", "candidates", *QUICK]) == 1
    assert "different outputs for equal inputs" in capsys.readouterr().err


def test_ctrl_c_ends_the_search_and_keeps_what_was_found(folder: Path) -> None:
    for number in range(300):
        (folder / "candidates" / f"{number}.py").write_text(f"{FAST}\n\nNUMBER = {number}\n")
    command = [sys.executable, "-m", "flows.cli", "optimize", "slow.py", "--provider", "candidates", *QUICK]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(
        [*command, "--minutes", "60", *QUICK],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        journal = folder / "slow-optimized" / "journal.jsonl"
        deadline = time.monotonic() + 120
        while not (journal.exists() and journal.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode in (0, 4), said
    assert "no more candidates" in said
    verdict = json.loads((folder / "slow-optimized" / "verdict.json").read_text())
    assert verdict["interrupted"] is True
