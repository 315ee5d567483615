"""Whose turn it is on a device that several workers share.

Programs are loaded and built side by side, which is the processors' work. Calls of models, on which correctness and
time depend, have the device to themselves, one exchange at a time, with cold caches.
"""

import contextlib
import time
from collections.abc import Iterator

from tasks.errors import MachineError
from tasks.judge.cuda import FLUSH_BYTES, Device
from tasks.judge.device_memory import FULL, used_bytes
from tasks.judge.turnstile import Turnstile
from tasks.judge.wire import WireError

ALONE = frozenset({"call", "call_between_events", "recopy", "call_in_float64"})
AT_LARGE = frozenset({"load", "draw", "init_inputs", "inputs", "loaded"})
"""What may take long or needs the processor only. All else waits for the device, though not with cold caches."""
MAY_COMPILE = frozenset({"build", "call"})
"""Where a program may compile its kernels for a minute: when it is built first, and when it is called first."""
QUIET_S = 2.0
MAX_WAIT_S = 300.0
# A flush of the caches takes a tenth of a millisecond, unless kernels of somebody else are running.
BUSY_FACTOR, BUSY_MS = 4.0, 1.0
MIN_FREE_BYTES, MAX_SHARE, LOOK_S = 2 << 30, 0.2, 0.25


class Lease:
    """Hands a device to one worker at a time, of all judges on this machine. Thread safe."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._look_at = 0.0
        self._is_short_of_memory = False
        self._total_bytes = 0
        self._turnstile = Turnstile(device.uuid)
        try:
            self._flush_at, self._flush_size, fd = device.allocate(FLUSH_BYTES)
        except MemoryError as error:
            self._turnstile.close()
            raise MachineError(f"{error}; end what uses it, or judge on another device") from error
        self._fd = fd
        with self._turnstile.turn():
            self._usual_ms = min(self.flush() for _ in range(5))

    @contextlib.contextmanager
    def turn(self, pid: int, *, waits: bool) -> Iterator[float]:
        """Let a worker do something.

        Args:
            pid: its process.
            waits: whether it must be alone on the device.

        Yields:
            The seconds waited for it.

        Raises:
            WireError: if that worker has left next to no memory to others.
        """
        if waits:
            asked_at = time.monotonic()
            with self._turnstile.turn():
                yield time.monotonic() - asked_at
        else:
            with self._turnstile.at_large():
                yield 0.0
        if blame := self.blame_for_memory(pid, looks=time.monotonic() >= self._look_at):
            raise WireError(blame)

    @contextlib.contextmanager
    def own_turn(self) -> Iterator[None]:
        """Let the referee itself compute on the device, beside no call that is timed."""
        with self._turnstile.turn():
            try:
                yield
            finally:
                self._device.synchronize()

    def blame_for_memory(self, pid: int, *, looks: bool = True) -> str:
        """What a worker has done that has left next to no memory to others; nothing if it is not to blame.

        Args:
            pid: its process.
            looks: or else what the last look found counts, since each takes the driver milliseconds.
        """
        if looks:
            self._look_at = time.monotonic() + LOOK_S
            free_bytes, self._total_bytes = self._device.memory_bytes
            self._is_short_of_memory = free_bytes < MIN_FREE_BYTES
        if not self._is_short_of_memory:
            return ""
        used = used_bytes(self._device.uuid, pid)
        is_much = used > MAX_SHARE * self._total_bytes
        return f"the process took {used >> 20} MiB of the device's memory, {FULL}" if is_much else ""

    def flush(self) -> float:
        """Have whoever has the turn find cold caches; the ms that took."""
        started = time.perf_counter()
        self._device.fill(self._flush_at, self._flush_size, 0)
        return (time.perf_counter() - started) * 1e3

    def await_quiet(self) -> float:
        """Wait until nothing runs on the device; to be asked within a turn, when the worker has answered.

        Returns:
            The ms for which somebody's kernels went on.

        Raises:
            WireError: if that worker's kernels go on although it said that it was ready.
        """
        blamed_s, started, late_ms = 0.0, time.monotonic(), 0.0
        while (flush_ms := self.flush()) > max(BUSY_MS, BUSY_FACTOR * self._usual_ms):
            late_ms += flush_ms
            if not self._turnstile.is_anybody_at_large():
                blamed_s += flush_ms / 1e3
            if blamed_s > QUIET_S or time.monotonic() - started > MAX_WAIT_S:
                raise WireError("the process kept the device busy after it had answered")
        return late_ms + max(0.0, flush_ms - self._usual_ms)

    def close(self) -> None:
        self._device.free(self._flush_at, self._flush_size, self._fd)
        self._turnstile.close()
