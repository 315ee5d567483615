"""After a power cut there is what was flushed and nothing else: a checkpoint that counts never lacks what it needs."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest
from test_grpo import train

from flows.parts.drawn import Drawn
from flows.parts.journal import Journal
from flows.publishing import publish
from tasks.training import checkpoints as checkpointing
from tasks.training.policy import load_policy, save_policy
from tests.training_builders import policy, policy_params


class Disk:
    """What fsync has brought to the disk; all else is in memory, and gone when the power fails."""

    def __init__(self) -> None:
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}

    def fsync(self, descriptor: int) -> None:
        path, inode = Path(f"/proc/self/fd/{descriptor}").resolve(), os.fstat(descriptor).st_ino
        if path.is_dir():
            self._names[inode] = {each.name: each.stat().st_ino for each in path.iterdir()}
        else:
            self._contents[inode] = path.read_bytes()

    def contents(self, path: Path) -> bytes:
        """Of a file, whatever it is called there."""
        return self._contents.get(path.stat().st_ino, b"")

    def read(self, path: Path) -> bytes | None:
        """What a file would hold after a power cut at this moment; None where it would not be there."""
        inode = self._names.get(path.parent.stat().st_ino, {}).get(path.name)
        return None if inode is None else self._contents.get(inode, b"")

    def rows(self, path: Path) -> list[dict]:
        return [json.loads(line) for line in (self.read(path) or b"").splitlines()]


@pytest.fixture
def disk(monkeypatch) -> Disk:
    made = Disk()
    monkeypatch.setattr(os, "fsync", made.fsync)
    return made


def lost(disk: Disk, folder: Path) -> list[str]:
    """Files of a folder that would not be as they are after a power cut at this moment."""
    return [path.name for path in folder.rglob("*") if path.is_file() and disk.read(path) != path.read_bytes()]


def test_a_row_is_on_the_disk_when_append_returns(tmp_path, disk):
    journal = Journal(tmp_path / "rows.jsonl")
    assert disk.read(journal.path) == b""
    for number in (1, 2):
        journal.append([{"a": number}])
        assert len(disk.rows(journal.path)) == number
    journal.close()


def test_rows_that_are_kept_are_on_the_disk_before_the_others_go(tmp_path, disk, monkeypatch):
    journal = Journal(tmp_path / "rows.jsonl")
    journal.append([{"step": 1}, {"step": 2}])
    journal.close()
    journal = Journal(tmp_path / "rows.jsonl")
    replace, replaced = Path.replace, []

    def noted(partial: Path, target: Path) -> Path:
        replaced.append(disk.contents(partial))  # which its new name may get ahead of
        return replace(partial, target)

    monkeypatch.setattr(Path, "replace", noted)
    journal.keep(lambda row: row["step"] == 1)
    assert replaced == [b'{"step": 1}\n']
    assert disk.rows(journal.path) == [{"step": 1}]
    journal.append([{"step": 2}])
    assert disk.rows(journal.path) == [{"step": 1}, {"step": 2}]
    journal.close()


def test_a_checkpoint_counts_when_it_and_the_steps_before_it_are_on_the_disk(tmp_path, disk, monkeypatch):
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 0.0)
    replace, counted = Path.replace, []

    def noted(partial: Path, marker: Path) -> Path:
        if marker.name == "whole":
            assert disk.contents(partial) == partial.read_bytes()
            assert lost(disk, marker.parent) == []
            counted.append({row["step"] for row in disk.rows(tmp_path / "rollouts.jsonl")})
            named = {row["candidate_id"] for row in disk.rows(tmp_path / "rollouts.jsonl")}
            assert named <= {row["candidate_id"] for row in disk.rows(tmp_path / "candidates.jsonl")}
        return replace(partial, marker)

    monkeypatch.setattr(Path, "replace", noted)
    drawn = Drawn(tmp_path, done_steps=0)

    def note(step, rollouts, cost):
        drawn.note_texts([rollout.candidate for rollout in rollouts])
        drawn.note_step(step, rollouts)

    train(tmp_path / "checkpoints", on_rollouts=note, steps=3)
    drawn.close()
    assert counted == [{1}, {1, 2}, {1, 2, 3}]
    assert disk.read(tmp_path / "checkpoints" / "checkpoint-3" / "whole") == b"without DeepSpeed"


def test_a_policy_that_has_its_place_is_whole(tmp_path, disk):
    save_policy(policy(), tmp_path / "policy")
    assert disk.contents(tmp_path / "policy" / "model.safetensors")
    assert lost(disk, tmp_path / "policy") == []
    load_policy(tmp_path / "policy", policy_params())


def test_what_a_stage_hands_on_is_whole_before_what_it_replaces_goes(tmp_path, disk, monkeypatch):
    outputs, target = tmp_path / "outputs", tmp_path / "data"
    (outputs / "policy").mkdir(parents=True)
    remove = shutil.rmtree
    for text in ("first", "second"):
        (outputs / "policy" / "model.safetensors").write_text(text)
        (outputs / "metrics.json").write_text(text)

        def noted(path: Path) -> None:
            if path.name == "policy":  # the one before; the next is beside it
                assert lost(disk, path.with_name(".policy.partial")) == []
            remove(path)

        monkeypatch.setattr(shutil, "rmtree", noted)
        publish(outputs, target)
        assert lost(disk, target) == []
        assert (target / "policy" / "model.safetensors").read_text() == text


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.ENOTSUP])
def test_a_file_system_that_cannot_flush_is_taken_as_it_is(tmp_path, monkeypatch, number):
    def refuse(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    journal = Journal(tmp_path / "rows.jsonl")
    journal.append([{"a": 1}])
    journal.close()
    assert Journal(tmp_path / "rows.jsonl").rows == [{"a": 1}]
