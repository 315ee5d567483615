"""This process's turns on the GPUs it trains on, which it takes from the judges of the machine and they from it.

A candidate is timed with the device to itself, whoever judges (tasks/judge/turnstile.py). Whoever trains there takes
part in that: it has the turn while it computes, and yields it between steps and while it waits for verdicts.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tasks.judge.turnstile import POLL_S, Turnstile


class Turns:
    """The turns on some devices, held or not. Not thread safe: one thread trains."""

    def __init__(self) -> None:
        self._turnstiles: list[Turnstile] = []
        self._held = ExitStack()

    @contextmanager
    def held(self, devices: Sequence[str]) -> Iterator[None]:
        """Have the devices to oneself, as far as judges are concerned.

        Raises:
            WorkerError: if somebody keeps one for too long.
        """
        self._turnstiles = [Turnstile(name) for name in sorted(devices)]  # in one order, or two could wait in a ring
        try:
            self._take()
            yield
        finally:
            self._held.close()
            for turnstile in self._turnstiles:
                turnstile.close()
            self._turnstiles = []

    @contextmanager
    def yielded(self) -> Iterator[None]:
        """Let judges in meanwhile; does nothing while no turn is held. Who leaves by an error needs no turn again."""
        self._held.close()
        yield
        self._take()

    def _take(self) -> None:
        for turnstile in self._turnstiles:
            self._held.enter_context(turnstile.turn())


class YieldingCallback(TrainerCallback):
    """Yields between steps for a moment that is long enough for whoever waits to notice."""

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if not args.use_cpu:
            torch.cuda.synchronize()
            with own_turns.yielded():
                time.sleep(5 * POLL_S)


own_turns = Turns()
"""Of this process."""


def training_devices() -> list[str]:
    """The GPU this process trains on, by the name judges know it by; none without CUDA."""
    if not torch.cuda.is_available():
        return []
    return [f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"]
