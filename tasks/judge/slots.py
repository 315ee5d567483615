"""The cores to judge on, each lent to one judgement at a time, and the seats of those that are measured."""

import contextlib
import os
import queue
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """A core to judge on, and the user that workers there become."""

    core: int
    uid: int | None


IN_HAND = 3
"""Candidates in hand on a device for each that is measured: the others build, or wait with everything built."""
BYTES_IN_HAND, SHARE_IN_HAND = 6 << 30, 0.75
"""Of the device's memory for each of them: its two processes, and what its problem's study holds; and for all of them
together, since inputs, outputs and kept studies need the rest."""


def num_in_hand(num_measured: int, *, cores: int, memory_bytes: int) -> int:
    """How many candidates a device's judge takes at once, of which so many are measured.

    >>> num_in_hand(6, cores=16, memory_bytes=80 << 30), num_in_hand(4, cores=8, memory_bytes=24 << 30)
    (10, 4)
    >>> num_in_hand(1, cores=16, memory_bytes=80 << 30)  # asked for where nothing must disturb it
    1

    Args:
        cores: that are there for this judge, one for each candidate.
        memory_bytes: of the device, likewise.
    """
    if num_measured == 1:
        return 1
    return max(num_measured, min(IN_HAND * num_measured, cores, int(SHARE_IN_HAND * memory_bytes) // BYTES_IN_HAND))


class Seat:
    """The right to be measured, beside no more than there are seats. To be entered, also again; given back at the end.

    Only whoever is in the room already may take one: it would keep those inside from leaving while it waits to enter.
    """

    def __init__(self, seats: threading.Semaphore) -> None:
        self._seats = seats
        self._is_taken = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def leave(self) -> None:
        """Let somebody else be measured; nothing more where it is not taken."""
        if self._is_taken:
            self._is_taken = False
            self._seats.release()

    def take(self) -> None:
        """Wait until there is one; nothing more where it has been taken before."""
        if not self._is_taken:
            self._seats.acquire()
            self._is_taken = True


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
        slots = [
            Slot(
                core=self._reserved("core", cores, index),
                uid=self._reserved("user", uids, index) if uids else None,
            )
            for index in range(num_slots)
        ]
        for slot in reversed(slots):  # those lent first are the first that had a core of their own
            self._free.put(slot)

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
