"""The cores to judge on, each lent to one judgement at a time."""

import contextlib
import os
import queue
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """A core to judge on, and the user that workers there become."""

    core: int
    uid: int | None


class Slots:
    """Lends slots, those that were given back last first. Thread safe."""

    def __init__(self) -> None:
        self._free: queue.LifoQueue[Slot] = queue.LifoQueue()

    def add(self, slot: Slot) -> None:
        self._free.put(slot)

    @contextlib.contextmanager
    def taken(self) -> Iterator[Slot]:
        """A free slot, with this thread on its core: the referee and both workers take turns there."""
        slot = self._free.get()
        cores = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {slot.core})
            yield slot
        finally:
            os.sched_setaffinity(0, cores)
            self._free.put(slot)
