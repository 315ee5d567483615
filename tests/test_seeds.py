"""Every seed that params.yaml may hold is one that all stages can draw with, and so is every seed made of it."""

from types import SimpleNamespace

import numpy as np
import pytest
from trl import GRPOConfig

from flows.self_supervised import _seed
from tasks.params import EngineParams
from tasks.training import trainer
from tasks.training.team import Team

LARGEST = (1 << 32) - 1


@pytest.mark.parametrize("seed", [0, 1, 4_256_639, LARGEST])
def test_the_seed_of_an_iteration_is_one_that_can_be_drawn_with(seed):
    for iteration in (1, 2, 1000):
        np.random.RandomState(_seed(SimpleNamespace(params=SimpleNamespace(seed=seed)), iteration))


def test_small_seeds_give_every_iteration_a_seed_of_its_own():
    seeds = [_seed(SimpleNamespace(params=SimpleNamespace(seed=seed)), number) for seed in (0, 1) for number in (1, 2)]
    assert seeds == [1, 2, 1010, 1011]


@pytest.mark.parametrize(("seed", "processes"), [(7, 4), (LARGEST, 1), (LARGEST, 4), (LARGEST - 3, 4)])
def test_a_trainer_can_add_the_number_of_any_process_to_its_seed(tmp_path, monkeypatch, seed, processes):
    made = Team(engine=EngineParams(processes=processes), number=0, size=processes, control=None)
    monkeypatch.setattr(trainer, "team", lambda: made)
    config = trainer.trainer_config(GRPOConfig, checkpoints=tmp_path, seed=seed, gradient_checkpointing=False)
    chosen = config.seed
    assert chosen == seed or seed + processes - 1 > LARGEST
    np.random.RandomState(chosen)
    np.random.RandomState(chosen + processes - 1)
