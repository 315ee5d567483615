"""A checkpoint that is there and cannot be read is named, with what to do, and stays where it is."""

from pathlib import Path

import pytest

from tasks.errors import TrainingError
from tasks.training import checkpoints as checkpointing
from tasks.training.checkpoints import newest_checkpoint
from tests import test_grpo, test_sft


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


@pytest.mark.parametrize("training", [test_sft, test_grpo], ids=["sft", "grpo"])
@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("optimizer.pt", cut),
        ("model.safetensors", cut),
        ("trainer_state.json", cut),
        ("optimizer.pt", Path.unlink),
        ("scheduler.pt", Path.unlink),
        ("reward_scale.json", Path.unlink),
        ("reward_scale.json", lambda path: path.write_text("[]")),
    ],
    ids=["optimiser", "weights", "state", "no optimiser", "no schedule", "no rewards", "other rewards"],
)
def test_a_damaged_checkpoint_is_named_with_the_remedy(training, name, harm, tmp_path, monkeypatch):
    if training is test_sft and name == "reward_scale.json":
        pytest.skip("nobody is rewarded here")
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 0.0)
    training.train(tmp_path, steps=2)
    newest = newest_checkpoint(tmp_path)
    harm(newest / name)
    with pytest.raises(TrainingError, match=rf"cannot go on after {newest}: .*delete {tmp_path} to begin"):
        training.train(tmp_path, steps=4)
    assert newest_checkpoint(tmp_path) == newest
