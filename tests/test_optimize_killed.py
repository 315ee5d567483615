"""`cuda-l1 optimize` with a language model and the real judge, killed on the way."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.cli import main
from flows.optimizing.answers import ANSWERS
from flows.soaks.provider import hostile_server
from tests.provider_builders import (
    PRICED,
    ROOT,
    answers_in,
    make_project,
    model,
    requests_of,
    wait_until,
    write_params,
)
from tests.test_optimize_command import QUICK


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.jsonl"


@pytest.fixture
def url(log: Path) -> Iterator[str]:
    with hostile_server(log) as url:
        yield url


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    make_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_killed_optimization_goes_on_and_buys_nothing_twice(url: str, log: Path, project: Path) -> None:
    """With the real judge: the one call that sums wins, should the machine be quiet enough to tell."""
    write_params(project, {"mine": model(url, "climbing", **PRICED)})
    command = ["optimize", "slow.py", "--provider", "mine", "--max-usd", "1", "--candidates", "3", *QUICK]
    out = project / "slow-optimized"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-m", "flows.cli", *command], env=environment) as process:
        wait_until(lambda: (out / ANSWERS).exists() and sum(row["form"] == "program" for row in answers_in(out)) >= 1)
        process.kill()
    known = answers_in(out)
    status = main(command)
    requests = requests_of(log, "climbing")
    assert len({row["request_id"] for row in requests}) == len(requests)
    rows = answers_in(out)
    assert [row["prompt"] for row in rows][: len(known)] == [row["prompt"] for row in known]
    assert len(rows) in (3, 4)  # one more where an answer was under way when the process was killed
    assert len(rows) - len(requests) in (0, 1)  # where that one was not sent yet
    verdict = json.loads((out / "verdict.json").read_text())
    assert verdict["providers"][0]["tokens"] >= sum(row["tokens"] for row in requests)
    assert status == (0 if verdict["faster"] else 4)
    if verdict["faster"]:
        assert verdict["provider"] == "mine"
        assert "It won by a program of mine, its answer to question" in (out / "report.md").read_text()
        assert "return x.sum(1)" in (out / "slow.py").read_text()
