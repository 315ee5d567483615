"""What a training does when its numbers leave the range of floats: no such update is made, no such weight is kept."""

import logging
from typing import Any

import torch
from transformers import PreTrainedModel, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tasks.errors import TrainingError
from tasks.training.checkpoints import REMEDY, is_finite, updates_per_step

MOST_IN_A_ROW = 3
"""Updates left out one after another before training ends: one is bad data, several are a policy that diverged."""

logger = logging.getLogger(__name__)


class SoundnessCallback(TrainerCallback):
    """Leaves out updates whose gradient is not finite.

    An update that is left out changes neither weights nor the optimiser's moments; the schedule goes on, so that every
    later step has the learning rate it would have had. Nothing else about the training is changed on its own account: a
    training that diverges ends with a word about what to change. DeepSpeed keeps gradients to itself, and leaves out
    such updates itself.

    Add it after the callback that says when there are checkpoints, which it puts off.
    """

    def __init__(self) -> None:
        self._in_a_row = 0

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        model: PreTrainedModel = kwargs["model"]
        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
        if norm.isfinite():
            self._in_a_row = 0
            return
        step = state.global_step // updates_per_step(args) + 1
        if not is_finite(model):
            raise TrainingError(f"step {step}: weights of the policy are not finite any more. {REMEDY}")
        self._in_a_row += 1
        if self._in_a_row >= MOST_IN_A_ROW:
            raise TrainingError(
                f"step {step}: the gradient's norm is {norm.item()}, as in the {MOST_IN_A_ROW - 1} updates before. "
                f"{REMEDY}. The same command continues from the newest checkpoint, made before this"
            )
        # Without gradients the optimiser touches nothing; with gradients of 0 its momentum would still move weights.
        model.zero_grad(set_to_none=True)
        logger.warning(f"step {step}: the gradient's norm is {norm.item()}; this update is left out")

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        if self._in_a_row and state.global_step < state.max_steps:
            control.should_save = False  # until an update shows that the weights still work
        return control
