"""Whose turn it is on a device that several workers share.

Programs are loaded and built side by side, which is the processors' work. Calls of models, on which correctness and
time depend, have the device to themselves, one exchange at a time, with cold caches.
"""

import contextlib
import threading
import time
from collections.abc import Iterator

from tasks.judge.cuda import FLUSH_BYTES, Device
from tasks.judge.wire import WireError

ALONE = frozenset({"call", "recopy", "call_in_float64"})
QUIET_S = 2.0
MAX_WAIT_S = 300.0
# A flush of the caches takes a tenth of a millisecond, unless kernels of somebody else are running.
BUSY_FACTOR, BUSY_MS = 4.0, 1.0


class Lease:
    """Hands a device to one worker at a time. Thread safe."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._num_at_large = 0
        self._flush_at, self._flush_size, fd = device.allocate(FLUSH_BYTES)
        self._fd = fd
        self._usual_ms = min(self._flush_ms() for _ in range(5))

    @contextlib.contextmanager
    def turn(self, operation: str) -> Iterator[float]:
        """Hold the device while a worker does something, if it needs it alone.

        Yields:
            The seconds waited for it.
        """
        if operation in ALONE:
            asked_at = time.monotonic()
            with self._lock:
                self._flush_ms()
                yield time.monotonic() - asked_at
            return
        with self._counting:
            self._num_at_large += 1
        try:
            yield 0.0
        finally:
            with self._counting:
                self._num_at_large -= 1

    def await_quiet(self) -> None:
        """Wait until nothing runs on the device; to be asked within a turn, when the worker has answered.

        Raises:
            WireError: if that worker's kernels go on although it said that it was ready.
        """
        blamed_s, started = 0.0, time.monotonic()
        while (flush_ms := self._flush_ms()) > max(BUSY_MS, BUSY_FACTOR * self._usual_ms):
            if not self._num_at_large:  # nobody else could be at work
                blamed_s += flush_ms / 1e3
            if blamed_s > QUIET_S or time.monotonic() - started > MAX_WAIT_S:
                raise WireError("the process kept the device busy after it had answered")

    def close(self) -> None:
        self._device.free(self._flush_at, self._flush_size, self._fd)

    def _flush_ms(self) -> float:
        started = time.perf_counter()
        self._device.fill(self._flush_at, self._flush_size, 0)
        return (time.perf_counter() - started) * 1e3
