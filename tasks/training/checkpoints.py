"""Checkpoints of a trainer: written every so often, told whole from half-written ones, and found again."""

import shutil
import time
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tasks.durable import flush
from tasks.errors import TrainingError
from tasks.training.team import team

REMEDY = (
    "Lower learning_rate in this stage's section of params.yaml, which begins the stage anew; if the data changed "
    "lately, look there first"
)
INTERVAL_S = 30.0
UNNOTICED_S = 1.5
"""What a checkpoint may take; the interval grows with those that take longer, so that they cost a twentieth at most."""
_MARKER = "whole"
"""A file that says how the checkpoint was written: the engine is no part of a stage's key."""


def newest_checkpoint(folder: Path) -> Path | None:
    """The whole checkpoint of the most steps, or None. A kill while one was written leaves it without its marker."""
    whole = [path.parent for path in folder.glob(f"checkpoint-*/{_MARKER}")]
    return max(whole, key=_updates, default=None)


def updates_per_step(args: TrainingArguments) -> int:
    """Updates of the weights in a step. What transformers calls a step is one update; a row is logged for each of ours.

    >>> updates_per_step(TrainingArguments(logging_steps=2))
    2
    """
    return int(args.logging_steps)


def checkpointed_steps(folder: Path, *, updates: int = 1) -> int:
    """Steps that training would not repeat if it were started again; 0 without a whole checkpoint.

    Args:
        updates: of the weights in each step.
    """
    newest = newest_checkpoint(folder)
    return _updates(newest) // updates if newest else 0


class CheckpointCallback(TrainerCallback):
    """Has the trainer write a checkpoint each interval and at the end, and keeps the newest whole one only.

    Weights that are not finite make no checkpoint whole, whoever asked for it: training ends with a TrainingError.
    Where a step has several updates, only after its last: what they are made from is in no checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._asked_at = self._saved_at = time.monotonic()
        self._interval_s = INTERVAL_S

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        self._asked_at = time.monotonic()
        due = self._asked_at - self._saved_at >= self._interval_s
        is_whole_step = state.global_step % updates_per_step(args) == 0
        is_last = state.global_step >= state.max_steps
        control.should_save = (team().agreed(due) and is_whole_step) or is_last
        return control

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if not all(team().gathered(is_finite(kwargs["model"]))):
            raise TrainingError(
                f"step {state.global_step // updates_per_step(args)}: weights of the policy are not finite any more. "
                f"{REMEDY}"
            )
        if team().is_first:
            # The marker comes last, and older checkpoints go only after it: there is a whole one at every moment, also
            # on the disk, should the power fail.
            written = self._folder / f"checkpoint-{state.global_step}"
            flush(written)
            partial = written / f".{_MARKER}.partial"
            partial.write_text(_form())
            flush(partial)
            partial.replace(written / _MARKER)
            flush(written / _MARKER)
            _remove_others(self._folder, written.name)
        self._saved_at = time.monotonic()
        self._interval_s = INTERVAL_S * max(1.0, (self._saved_at - self._asked_at) / UNNOTICED_S)


def damaged(checkpoint: Path, error: Exception) -> TrainingError:
    """What is said of a checkpoint that bears its marker and after which training cannot go on all the same."""
    return TrainingError(
        f"training cannot go on after {checkpoint}: {type(error).__name__}: {error}. If the checkpoint is damaged, put "
        f"back what is missing, or delete {checkpoint.parent} to begin this training anew"
    )


def is_finite(model: PreTrainedModel) -> bool:
    """Whether all weights are; of a model that ZeRO-3 has shared out, all of this process's share."""
    return all(bool(getattr(weight, "ds_tensor", weight).isfinite().all()) for weight in model.parameters())


def settle(folder: Path) -> None:
    """Clear what a killed run left half-written, so that the trainer never meets it.

    Raises:
        TrainingError: if the newest whole checkpoint is of another engine, or lacks its optimiser or schedule. The
            trainer would fail to read it, or worse, go on with its weights alone and an optimiser that remembers
            nothing.
    """
    newest = newest_checkpoint(folder)
    if newest and (form := (newest / _MARKER).read_text()) != _form():
        raise TrainingError(
            f"{newest} was written {form}, but the section engine of params.yaml asks for training {_form()}, which "
            f"cannot read it. Set engine back to go on after it, or delete {folder} to begin this training anew"
        )
    if newest and not team().engine.zero_stage:  # DeepSpeed has files of its own, and misses them
        for name in ("optimizer.pt", "scheduler.pt"):
            if not (newest / name).is_file():
                raise damaged(newest, FileNotFoundError(f"there is no {name}"))
    if team().is_first:
        _remove_others(folder, newest.name if newest else "")
    team().wait()


def _form() -> str:
    """How checkpoints of this process's team are written. Those of DeepSpeed are one part for each process."""
    engine = team().engine
    if not engine.zero_stage:
        return "without DeepSpeed"
    return f"under ZeRO-{engine.zero_stage} in {engine.size} processes with offload {engine.offload}"


def _remove_others(folder: Path, kept: str) -> None:
    for path in folder.glob("checkpoint-*"):
        if path.name != kept:
            # A checkpoint half removed must not pass for a whole one.
            (path / _MARKER).unlink(missing_ok=True)
            shutil.rmtree(path)


def _updates(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])
