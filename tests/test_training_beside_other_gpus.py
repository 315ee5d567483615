"""One process trains on one GPU, however many the machine has: the others may be the judges'."""

from pathlib import Path

import pytest
import torch
from accelerate.state import AcceleratorState
from trl import GRPOConfig, SFTConfig

from tasks.training.trainer import trainer_config

GROUP = {"num_generations": 2, "per_device_train_batch_size": 2}


@pytest.mark.parametrize(("kind", "more"), [(SFTConfig, {}), (GRPOConfig, GROUP)])
def test_one_process_trains_on_one_of_several_gpus(
    kind: type, more: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr("transformers.training_args.is_torch_bf16_gpu_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)
    config = trainer_config(kind, checkpoints=tmp_path, seed=0, gradient_checkpointing=False, **more)
    request.addfinalizer(AcceleratorState._reset_state)
    assert config.device == torch.device("cuda:0")
    assert config.n_gpu == 1, "TRL refuses what transformers would spread over several GPUs"
    assert config.train_batch_size == config.per_device_train_batch_size
