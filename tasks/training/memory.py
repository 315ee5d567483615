"""What a training does when a batch does not fit into memory: the same gradient in smaller parts."""

import logging
from typing import Any, cast

import torch
from accelerate.utils import DistributedType
from torch import Tensor
from transformers import Trainer

from tasks.errors import TrainingError

logger = logging.getLogger(__name__)


class PartedBatches(Trainer):
    """Mix in before a trainer. A batch that does not fit is computed in halves, and so is each from then on.

    The update begins again with its first batch, since a backward pass that failed leaves part of its gradient behind.
    Where several processes train together there is no such way back: the others wait for what this one cannot do.
    """

    rows_at_once: int | None = None
    """Rows of a batch computed side by side; None computes all."""
    _rows_tried: int | None = None
    _of_update: tuple[Any, ...] = ()

    def training_step(self, model: Any, inputs: Any, *others: Any, **named: Any) -> Tensor:
        loss = self._halved_until_it_fits(model, inputs, *others, **named)
        if self.accelerator.sync_gradients:
            self._of_update = ()
        return loss

    def _halved_until_it_fits(self, model: Any, inputs: Any, *others: Any, **named: Any) -> Tensor:
        self._of_update = (*self._of_update, inputs)
        self._rows_tried = None
        try:
            return super().training_step(model, inputs, *others, **named)
        except torch.OutOfMemoryError as error:
            self._halve(error)
        # Only here is the error gone, and with it what it held of the failed pass.
        model.zero_grad()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        again, self._of_update = self._of_update, ()
        self.step_back(len(again) - 1)
        return [self._halved_until_it_fits(model, each, *others, **named) for each in again][-1]

    def compute_loss(self, model: Any, inputs: Any, *others: Any, **named: Any) -> Any:
        rows = _num_rows(inputs)
        at_once = self._rows_tried = min(rows, self.rows_at_once or rows)
        if at_once == rows:
            return super().compute_loss(model, inputs, *others, **named)
        done = torch.zeros((), device=self.accelerator.device)
        for start in range(0, rows, at_once):
            part = {name: value[start : start + at_once] if value.dim() else value for name, value in inputs.items()}
            loss = cast(Tensor, super().compute_loss(model, part, *others, **named)) * self.share(part, inputs)
            if start + at_once < rows:
                self._accumulate(loss)
                done += loss.detach()
        return loss + done  # whose backward pass is the caller's

    def _accumulate(self, loss: Tensor) -> None:
        """The backward pass of a part, whose gradient waits for that of the last."""
        if self.accelerator.distributed_type == DistributedType.DEEPSPEED:
            # Through the accelerator DeepSpeed would take the optimiser's step now.
            self.accelerator.deepspeed_engine_wrapped.backward(loss, sync_gradients=False, scale_wrt_gas=False)
        else:
            self.accelerator.backward(loss)

    def log(self, logs: dict[str, float], *others: Any) -> None:
        """Tell with every row of what was halved."""
        self._tr_loss.nan_to_num_()  # transformers' sum, which a row begins by taking away the last: nan would stay
        super().log(logs | ({"rows_at_once": float(self.rows_at_once)} if self.rows_at_once else {}), *others)

    def share(self, part: dict[str, Tensor], whole: dict[str, Tensor]) -> float:
        """What to count the loss of some of a batch's rows with; of a mean over rows, their share."""
        return _num_rows(part) / _num_rows(whole)

    def step_back(self, batches: int) -> None:
        """Take note that so many batches are going to be computed again."""

    def _halve(self, error: torch.OutOfMemoryError) -> None:
        step = self.state.global_step + 1
        # Before its loss, such as where a reference model reads it (kl_beta), a batch cannot be parted.
        rows = self._rows_tried or "the batch's"
        if self._rows_tried in (None, 1) or self.accelerator.distributed_type != DistributedType.NO:
            raise TrainingError(
                f"update {step}: {rows} row(s) do not fit into memory beside the policy: {error}. Lower "
                f"policy.context_tokens or the batch in params.yaml, or take a larger device or more of them; the same "
                f"command continues from the newest checkpoint"
            ) from error
        self.rows_at_once = self._rows_tried // 2
        logger.warning(
            f"update {step}: {self._rows_tried} rows do not fit into memory; it is done again, and all others are "
            f"done, with {self.rows_at_once} at once, to the same gradient"
        )


def _num_rows(inputs: dict[str, Tensor]) -> int:
    return next(len(value) for value in inputs.values() if value.dim())
