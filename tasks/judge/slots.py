"""The cores to judge on, each lent to one judgement at a time."""

import contextlib
import os
import queue
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """A core to judge on, and the user that workers there become."""

    core: int
    uid: int | None


class Slots:
    """Lends slots, those that were given back last first. Thread safe.

    Cores and users that other judges of this machine work with are left to them, as long as there are others.
    """

    def __init__(self) -> None:
        self._free: queue.LifoQueue[Slot] = queue.LifoQueue()
        self._reservations: list[socket.socket] = []

    def fill(self, num_slots: int, *, cores: Sequence[int], uids: Sequence[int]) -> None:
        """Make slots.

        Args:
            uids: users that workers may become; empty where they cannot.
        """
        for index in reversed(range(num_slots)):
            core = self._reserved("core", cores, index)
            self._free.put(Slot(core=core, uid=self._reserved("user", uids, index) if uids else None))

    def close(self) -> None:
        for reservation in self._reservations:
            reservation.close()

    def _reserved(self, kind: str, numbers: Sequence[int], index: int) -> int:
        """The number at the index, or one of the others if another judge has it; shared if all are taken."""
        index %= len(numbers)
        for number in (*numbers[index:], *numbers[:index]):
            reservation = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                # A name without a file, which the kernel forgets when this process ends, however it ends.
                reservation.bind(f"\0cuda-l1-judge-{kind}-{number}")
            except OSError:
                reservation.close()
                continue
            self._reservations.append(reservation)
            return number
        return numbers[index]

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
