"""Damaged files of DVC's cache: found, and made anew from what they are copies of."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from flows.retraining.dvc_cache import mend_cache
from flows.soaks.retrain_faults import flip_a_bit

pytestmark = pytest.mark.slow


@pytest.fixture
def cached(tmp_path, monkeypatch) -> Path:
    """A DVC project with a file and a folder among its outputs, both in the cache."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc" / "config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
    stage = {"cmd": "echo one > file && mkdir folder && echo two > folder/part", "outs": ["file", "folder"]}
    (tmp_path / "dvc.yaml").write_text(json.dumps({"stages": {"sft": stage}}))
    dvc("repro")
    return tmp_path


def dvc(*arguments: str) -> str:
    return subprocess.run([sys.executable, "-m", "dvc", *arguments], check=True, capture_output=True, text=True).stdout


def cached_file(root: Path, content: str) -> Path:
    (found,) = [
        path for path in (root / ".dvc/cache/files").rglob("*") if path.is_file() and path.read_text() == content
    ]
    return found


@pytest.mark.parametrize(("content", "output"), [("one\n", "file"), ("two\n", "folder/part")])
def test_a_damaged_cache_file_is_made_anew_from_its_output(cached, content, output):
    damaged = cached_file(cached, content)
    flip_a_bit(damaged, random.Random(0))
    assert damaged.read_text() != content
    assert mend_cache() == [Path(output)]
    assert damaged.read_text() == content
    assert damaged.stat().st_mode & 0o777 == 0o444
    assert mend_cache() == []
    assert "didn't change, skipping" in dvc("repro")


def test_a_damaged_cache_file_without_a_whole_output_is_removed_and_made_by_its_stage(cached):
    damaged = cached_file(cached, "one\n")
    flip_a_bit(damaged, random.Random(0))
    (cached / "file").unlink()
    assert mend_cache() == [Path("file")]
    assert not damaged.exists()
    (cached / "folder/part").unlink()  # mkdir is to make it
    (cached / "folder").rmdir()
    dvc("repro")
    assert (cached / "file").read_text() == cached_file(cached, "one\n").read_text()
