"""The file in which DVC notes who reads and writes what: one that a kill cut short stops nobody."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from flows.dvc_lock import RWLOCK, mend_lock

PROJECT = Path(__file__).parent.parent


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    (tmp_path / ".dvc" / "tmp").mkdir(parents=True)
    (tmp_path / ".dvc" / "config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
    (tmp_path / "dvc.yaml").write_text(json.dumps({"stages": {"sft": {"cmd": "echo one > file", "outs": ["file"]}}}))
    return tmp_path


def repro() -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dvc", "repro"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("left", [b"", b'{"read": {"/a": [{"pid": 1,'], ids=["nothing", "half of it"])
def test_what_a_kill_left_of_it_is_removed_before_dvc_looks(project, left):
    RWLOCK.write_bytes(left)
    assert "corrupted" in repro().stderr  # or DVC mends it by itself, and nobody needs ours
    told = subprocess.run([sys.executable, "-m", "flows.dvc_lock"], capture_output=True, text=True, check=True)
    assert str(RWLOCK) in told.stderr + told.stdout
    assert repro().returncode == 0


def test_help_says_what_is_removed_and_removes_nothing(project):
    RWLOCK.write_bytes(b"{")
    command = [sys.executable, "-m", "flows.dvc_lock", "--help"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"Remove {RWLOCK} where a kill left half of it" in " ".join(told.split())
    assert RWLOCK.exists()


@pytest.mark.parametrize("content", [None, "{}", '{"read": {}, "write": {}}'])
def test_a_whole_one_or_none_is_left_alone(project, content):
    if content is not None:
        RWLOCK.write_text(content)
    mend_lock()
    assert (RWLOCK.read_text() if RWLOCK.exists() else None) == content
