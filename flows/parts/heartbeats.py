"""Whether the other processes of a team live, also those whose machine is gone without a word.

A connection to a machine that lost its power or its network stays open and silent. Whoever waits there for words about
the work, which may be hours while candidates are judged, would wait as long as that is allowed.
"""

import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.distributed import TCPStore

BEAT_S = 5.0
LOST_S = 180.0
"""Longer than anything keeps a living process's threads from running."""


class Heartbeats:
    """Tells the team's store that this process lives, and hears it of those that it cannot go on without."""

    def __init__(self, store: "TCPStore", *, number: int, watched: Iterable[int]) -> None:
        # A connection of its own: who waits for an answer holds up others. torch's stubs lack the method.
        self._store: TCPStore = store.clone()  # type: ignore[attr-defined]
        self._number = number
        self._counts = dict.fromkeys(watched, 0)
        self._heard_at = dict.fromkeys(self._counts, time.monotonic())
        self._ended = threading.Event()
        threading.Thread(target=self._beat, name="heartbeats", daemon=True).start()

    def lost(self, *, silent_s: float) -> int | None:
        """The first process that was not heard of for so long; None if there is none."""
        now = time.monotonic()
        return next((number for number, heard_at in self._heard_at.items() if now - heard_at > silent_s), None)

    def absent(self, *, silent_s: float) -> list[int]:
        """The processes that have not come yet, or were not heard of for so long since they came."""
        now = time.monotonic()
        return [
            number
            for number, heard_at in self._heard_at.items()
            if self._store.add(_beats(number), 0) == 0 or now - heard_at > silent_s
        ]

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    def end(self) -> None:
        """Be silent from now on."""
        self._ended.set()

    def _beat(self) -> None:
        from torch.distributed import DistError

        while not self._ended.is_set():
            try:
                self._store.add(_beats(self._number), 1)
                for number, count in self._counts.items():
                    self._counts[number] = self._store.add(_beats(number), 0)
                    if self._counts[number] != count:
                        self._heard_at[number] = time.monotonic()
            except DistError:
                return  # the store went with the first process, which is not heard of any more
            self._ended.wait(BEAT_S)


def _beats(number: int) -> str:
    return f"beats of {number}"
