"""The history versioned by a real DVC."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from history_builders import distinct, problem, run, verdict

from flows.snapshot import is_versioned, snapshot_history
from tasks.errors import MachineError
from tasks.history.store import History

ROOT = Path(__file__).parent.parent


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A DVC project with a history."""
    for name in ("dvc.yaml", "params.yaml"):
        (tmp_path / name).write_text("")
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc" / "config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    judged = distinct(5)
    verdicts = [verdict(one) for one in judged]
    History(Path("data/history.duckdb")).append(run(), problems=[problem()], candidates=judged, verdicts=verdicts)
    return tmp_path


def test_a_snapshot_is_noted_once_a_change_and_comes_back_from_the_cache(project):
    assert not is_versioned()
    snapshot_history()
    assert is_versioned()
    noted = Path("data/history.dvc").read_text()
    first = Path("data/history/manifest.json").read_bytes()
    snapshot_history()
    assert Path("data/history.dvc").read_text() == noted
    History(Path("data/history.duckdb")).append(run("another"))
    snapshot_history()
    assert Path("data/history.dvc").read_text() != noted
    Path("data/history.dvc").write_text(noted)
    subprocess.run([sys.executable, "-m", "dvc", "checkout", "--force", "--quiet", "data/history.dvc"], check=True)
    assert Path("data/history/manifest.json").read_bytes() == first


def test_a_snapshot_that_fails_says_why_and_keeps_the_one_before(project):
    Path("data/history.duckdb").write_text("no history")
    with pytest.raises(MachineError, match=r"history export failed: RecordError: .*not a DuckDB file"):
        snapshot_history()
    assert not is_versioned()
