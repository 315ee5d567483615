"""What a training does when the machine wants its place back: SIGTERM, a checkpoint, and a word about going on."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tasks.errors import PreemptedError
from tasks.training.checkpoints import updates_per_step
from tasks.training.team import team


class Preemption(TrainerCallback):
    """Ends a training that was asked to end at its next whole step, or at once where nothing would be lost.

    Add it after the callback that decides about checkpoints. Where several processes train together, all end after the
    same step, whichever of them was asked.
    """

    def __init__(self) -> None:
        self._is_asked = False
        self._is_interruptible = False

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Listen for SIGTERM, where we are the thread that can.

        Raises:
            PreemptedError: at the end, if we were asked to end.
        """
        can_listen = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGTERM, self._note) if can_listen else None
        try:
            yield
        finally:
            if can_listen:
                signal.signal(signal.SIGTERM, before)
        if self._agreed():  # during the last step
            raise PreemptedError(_REASON)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """A block that may be left at any moment: what it does is done again after the newest checkpoint.

        Raises:
            PreemptedError: within the block, as soon as we are asked to end.
        """
        self._is_interruptible = team().size == 1
        try:
            if self._is_asked and self._is_interruptible:
                raise PreemptedError(_REASON)
            yield
        finally:
            self._is_interruptible = False

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        is_whole_step = state.global_step % updates_per_step(args) == 0
        if is_whole_step and state.global_step < state.max_steps and self._agreed():
            control.should_save = control.should_training_stop = True
        return control

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.global_step < state.max_steps:
            raise PreemptedError(_REASON)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._is_asked = True
        if self._is_interruptible:
            self._is_interruptible = False
            raise PreemptedError(_REASON)

    def _agreed(self) -> bool:
        return any(team().gathered(self._is_asked))


_REASON = (
    "the machine asked this process to end (SIGTERM); every step until now is in a checkpoint, and the same command "
    "continues after the last of them"
)
