"""A checkpoint that is there and cannot be read is named, with what to do, and stays where it is."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from tasks.errors import TrainingError
from tasks.training import checkpoints as checkpointing
from tasks.training.checkpoints import newest_checkpoint
from tests import test_grpo, test_sft


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


HARMS = {
    "optimiser": ("optimizer.pt", cut),
    "weights": ("model.safetensors", cut),
    "state": ("trainer_state.json", cut),
    "no optimiser": ("optimizer.pt", Path.unlink),
    "no schedule": ("scheduler.pt", Path.unlink),
}
HARMS_TO_REWARDS = {
    "no rewards": ("reward_scale.json", Path.unlink),
    "other rewards": ("reward_scale.json", lambda path: path.write_text("[]")),
}


@pytest.fixture(scope="module")
def two_steps(tmp_path_factory: pytest.TempPathFactory) -> Callable[[ModuleType], Path]:
    """What two steps of a training leave, to be copied: every harm is done to a copy of its own."""

    @cache
    def left_by(training: ModuleType) -> Path:
        folder = tmp_path_factory.mktemp("two_steps")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(checkpointing, "INTERVAL_S", 0.0)
            training.train(folder, steps=2)
        return folder

    return left_by


@pytest.mark.parametrize(
    ("training", "name", "harm"),
    [
        *(pytest.param(test_sft, *harm, id=f"sft, {words}") for words, harm in HARMS.items()),
        *(pytest.param(test_grpo, *harm, id=f"grpo, {words}") for words, harm in (HARMS | HARMS_TO_REWARDS).items()),
    ],
)
def test_a_damaged_checkpoint_is_named_with_the_remedy(training, name, harm, two_steps, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 0.0)
    shutil.copytree(two_steps(training), tmp_path, dirs_exist_ok=True)
    newest = newest_checkpoint(tmp_path)
    harm(newest / name)
    with pytest.raises(TrainingError, match=rf"cannot go on after {newest}: .*delete {tmp_path} to begin"):
        training.train(tmp_path, steps=4)
    assert newest_checkpoint(tmp_path) == newest
