"""The cores to judge on, each lent to one judgement at a time."""

import contextlib
import os
import queue
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """Cores to judge on, and the user that workers there become."""

    cores: tuple[int, ...]
    """Where referee and workers take turns is the first; a second is for compilers besides."""
    uid: int | None


class Slots:
    """Lends slots, those that were given back last first. Thread safe.

    Cores and users that other judges of this machine work with are left to them, as long as there are others.
    """

    def __init__(self) -> None:
        self._free: queue.LifoQueue[Slot] = queue.LifoQueue()
        self._reservations: list[socket.socket] = []

    def fill(self, num_slots: int, *, cores: Sequence[int], uids: Sequence[int], has_spare: bool = False) -> None:
        """Make slots.

        Args:
            uids: users that workers may become; empty where they cannot.
            has_spare: whether a slot gets a second core, one that nobody runs on, as long as there are such.
        """
        own = [self._reserved("core", cores, index) for index in range(num_slots)]
        spare = [core for core in reversed(cores) if not self._is_taken("core", core)] if has_spare else []
        for index in reversed(range(num_slots)):
            second = (spare[index % len(spare)],) if spare else ()
            uid = self._reserved("user", uids, index) if uids else None
            self._free.put(Slot(cores=(own[index], *second), uid=uid))

    def close(self) -> None:
        for reservation in self._reservations:
            reservation.close()

    def _reserved(self, kind: str, numbers: Sequence[int], index: int) -> int:
        """The number at the index, or one of the others if another judge has it; shared if all are taken."""
        index %= len(numbers)
        for number in (*numbers[index:], *numbers[:index]):
            reservation = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                reservation.bind(_name(kind, number))
            except OSError:
                reservation.close()
                continue
            self._reservations.append(reservation)
            return number
        return numbers[index]

    def _is_taken(self, kind: str, number: int) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as trial:
            try:
                trial.bind(_name(kind, number))
            except OSError:
                return True
        return False

    @contextlib.contextmanager
    def taken(self) -> Iterator[Slot]:
        """A free slot, with this thread on its first core: the referee and both workers take turns there."""
        slot = self._free.get()
        cores = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, slot.cores[:1])
            yield slot
        finally:
            os.sched_setaffinity(0, cores)
            self._free.put(slot)


def _name(kind: str, number: int) -> str:
    """Of a socket without a file, which the kernel forgets when its process ends, however it ends."""
    return f"\0cuda-l1-judge-{kind}-{number}"
