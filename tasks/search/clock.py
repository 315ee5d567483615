"""The time that a search has used, which a run that continues it takes over; several searches may share one clock."""

import time


class Clock:
    """Counts seconds from when it is made."""

    def __init__(self) -> None:
        self._began_at = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began_at

    def advance(self, elapsed_s: float) -> None:
        """Count at least so many seconds as used: what is known from a run before had taken them."""
        self._began_at = min(self._began_at, time.monotonic() - elapsed_s)
