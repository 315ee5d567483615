"""What every trainer here shares: arguments that keep it quiet and deterministic, and its curve."""

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
from transformers import (
    PreTrainedModel,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.integrations.deepspeed import unset_hf_deepspeed_config
from trl import GRPOConfig, SFTConfig

from tasks.errors import CudaL1Error
from tasks.training.acceleration import accelerated
from tasks.training.checkpoints import damaged, newest_checkpoint, updates_per_step
from tasks.training.preemption import Preemption
from tasks.training.sharding import deepspeed_settings, fetch_whole_layers
from tasks.training.team import team
from tasks.training.too_large import said_to_be_too_large
from tasks.training.turns import YieldingCallback, own_turns, training_devices

OnStep = Callable[[int, dict[str, float]], None]
Config = TypeVar("Config", SFTConfig, GRPOConfig)


class StepCallback(TrainerCallback):
    """Hands the row of each step to a function."""

    def __init__(self, on_step: OnStep | None, keys: Sequence[str]) -> None:
        self._on_step = on_step
        self._keys = keys

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        logs = kwargs["logs"]
        if self._on_step and "loss" in logs:
            self._on_step(state.global_step // updates_per_step(args), _row(logs, self._keys))


def trainer_config(
    kind: type[Config],
    *,
    checkpoints: Path,
    seed: int,
    gradient_checkpointing: bool,
    updates: int = 1,
    **arguments: Any,
) -> Config:
    """Arguments of a trainer that says nothing itself, logs every step to callbacks and runs where the model is.

    Args:
        updates: of the weights in each step; other arguments call each of them a step.
    """
    on_cuda = torch.cuda.is_available()
    # TRL still uses a name that transformers has replaced.
    warnings.filterwarnings("ignore", message=".*gradient_checkpointing", category=FutureWarning)
    config = kind(
        output_dir=str(checkpoints),
        seed=seed % ((1 << 32) - team().size + 1),  # GRPO's adds the process's number, and numpy takes 32 bits
        use_cpu=not on_cuda,
        bf16=on_cuda,
        gradient_checkpointing=gradient_checkpointing,
        dataloader_pin_memory=on_cuda,
        report_to="none",
        disable_tqdm=True,
        logging_steps=updates,
        logging_nan_inf_filter=False,  # it would show a mean of earlier losses in place of one that is not finite
        save_strategy="no",  # CheckpointCallback says when
        shuffle_dataset=False,  # rows come in the order of training
        deepspeed=deepspeed_settings(team().engine, on_cuda=on_cuda),
        optim="adamw_torch_fused",
        adam_beta1=0.9,
        adam_beta2=0.95,
        max_grad_norm=1.0,
        lr_scheduler_type="cosine_warmup_with_min_lr",  # others begin at 0, and the first step's answers would be lost
        lr_scheduler_kwargs={"min_lr_rate": 0.1},
        **arguments,
    )
    # A process trains on the GPU its model is on. Of several that it sees, which judges may be on, transformers would
    # wrap the model in nn.DataParallel, which TRL refuses; where it must not, it sets this same field.
    config._n_gpu = min(config.n_gpu, 1)
    return config


def run(
    trainer: Trainer, *, checkpoints: Path, keys: Sequence[str], preemption: Preemption | None = None
) -> list[dict[str, float]]:
    """Train, from the newest whole checkpoint on if there is one; one row per step, those before it included.

    Raises:
        PreemptedError: if this process was asked to end; a checkpoint has the steps until then.
        TrainingError: if weights or gradients are not finite, no row of a batch fits into memory, or training cannot
            go on after the checkpoint.
        MachineError: if what training keeps beside a batch does not fit.
    """
    preemption = preemption or Preemption()
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(preemption)
    newest = newest_checkpoint(checkpoints)
    trainer.add_callback(YieldingCallback)
    packing = bool(getattr(trainer, "padding_free", False))
    if team().engine.zero_stage == 3 and team().engine.offload != "nvme":  # where few buffers wait, for a weight each
        fetch_whole_layers(cast(PreTrainedModel, trainer.model))
    begun = _Begun()
    trainer.add_callback(begun)
    with (
        _said_of_the_checkpoint(newest, begun),
        preemption.awaited(),
        own_turns.held(training_devices()),
        accelerated(cast(PreTrainedModel, trainer.model), packing=packing, compiles=team().engine.compiles),
        # Of training steps themselves, what does not fit is computed in parts.
        said_to_be_too_large(
            "the optimiser's state",
            remedy="Train adapters (policy.adapter), raise engine.zero_stage or set engine.offload",
        ),
    ):
        trainer.train(resume_from_checkpoint=str(newest) if newest else None)
    if team().engine.zero_stage == 3:
        _make_whole(trainer)
    unset_hf_deepspeed_config()  # else the next model would be loaded as a share of one, by this process alone
    updates = updates_per_step(trainer.args)
    logged = [logs for logs in trainer.state.log_history if "loss" in logs]
    return [{"step": logs["step"] // updates, **_row(logs, keys)} for logs in logged]


class _Begun(TrainerCallback):
    """Knows whether the first step has begun: whatever is read from a checkpoint has been read by then."""

    is_so = False

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.is_so = True


@contextlib.contextmanager
def _said_of_the_checkpoint(checkpoint: Path | None, begun: _Begun) -> Iterator[None]:
    """What fails before the first step after a checkpoint is named with it, whose fault it may be."""
    try:
        yield
    except (CudaL1Error, MemoryError, torch.AcceleratorError):
        raise
    except Exception as error:
        if checkpoint is None or begun.is_so:
            raise
        raise damaged(checkpoint, error) from error


def _make_whole(trainer: Trainer) -> None:
    """Give the first process's model its weights back, of which ZeRO-3 has left every process a part."""
    weights = trainer.accelerator.get_state_dict(trainer.deepspeed)
    trainer.model_wrapped.destroy()  # type: ignore[operator]
    if not team().is_first:
        return
    model = cast(PreTrainedModel, trainer.model)
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            whole = weights[f"{path}.{name}" if path else name]
            setattr(module, name, torch.nn.Parameter(whole, requires_grad=parameter.requires_grad))
    model.tie_weights()


def _row(logs: Mapping[str, Any], keys: Sequence[str]) -> dict[str, float]:
    """What is known of a step; what is not finite is not, such as the norm of a gradient that was refused."""
    return {key: float(logs[key]) for key in keys if logs.get(key) is not None and math.isfinite(logs[key])}
