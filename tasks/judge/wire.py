"""How the referee and its worker processes talk: small JSON frames, and bytes in memory that the referee owns.

Nothing here trusts the other side. A frame is capped, must be one JSON object, and carries the kernel's own time of
sending; tensors never cross as objects, only as raw bytes at agreed places.
"""

import fcntl
import json
import mmap
import os
import select
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

FRAME_BYTES = 64 << 10
LOG_BYTES = 4_000
MAX_LOG_READS = 64
ALIGNMENT = 4_096
MAX_TENSORS = 256
MAX_DIMENSIONS = 16

# Width of each dtype that may cross. Anything else cannot be compared and is refused by name.
ITEM_BYTES = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
}  # fmt: skip

_SO_TIMESTAMPNS = 35  # not in the socket module; the value of every Linux architecture but parisc and sparc
_TIMESPEC = struct.Struct("qq")


class WireError(Exception):
    """The other side closed, sent something that is not a frame, or described a tensor that cannot be."""


class DeadlineError(Exception):
    """The other side did not answer in time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorSpec:
    """A tensor's form, without its values."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    """In elements, as torch has it; 0 along an expanded dimension."""

    @property
    def num_items(self) -> int:
        """Elements of memory that the tensor spans; fewer than it has when a stride is 0."""
        if 0 in self.shape:
            return 0
        return 1 + sum((size - 1) * step for size, step in zip(self.shape, self.stride, strict=True))

    @property
    def num_bytes(self) -> int:
        return self.num_items * ITEM_BYTES[self.dtype]

    def to_json(self) -> list[Any]:
        return [self.dtype, list(self.shape), list(self.stride)]

    @classmethod
    def from_json(cls, row: object) -> "TensorSpec":
        """The spec that to_json wrote; a row of two entries is a contiguous tensor.

        Raises:
            WireError: if it is anything else, or absurd.
        """
        if not isinstance(row, list) or len(row) not in (2, 3):
            raise WireError(f"not a tensor's form: {str(row)[:200]}")
        dtype, shape = row[0], row[1]
        stride = row[2] if len(row) == 3 else _contiguous(shape)
        if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
            raise WireError(f"a tensor of dtype {str(dtype)[:80]} cannot be compared")
        for sizes in (shape, stride):
            if not (
                isinstance(sizes, list)
                and len(sizes) <= MAX_DIMENSIONS
                and all(type(size) is int and 0 <= size < 1 << 40 for size in sizes)
            ):
                raise WireError(f"not a tensor's sizes: {str(sizes)[:200]}")
        if len(shape) != len(stride):
            raise WireError(f"shape {shape} and strides {stride} differ in length")
        return cls(dtype=dtype, shape=tuple(shape), stride=tuple(stride))


def _contiguous(shape: object) -> list[int]:
    if not isinstance(shape, list) or not all(type(size) is int for size in shape):
        raise WireError(f"not a tensor's sizes: {str(shape)[:200]}")
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def offsets(specs: Sequence[TensorSpec]) -> tuple[list[int], int]:
    """Where each tensor begins within a block that holds them all, and the bytes of the block."""
    starts, at = [], 0
    for spec in specs:
        starts.append(at)
        at += -(-spec.num_bytes // 64) * 64
    return starts, max(at, 64)


def aligned(num_bytes: int) -> int:
    return -(-num_bytes // ALIGNMENT) * ALIGNMENT


class Arena:
    """Memory shared with one worker. The referee makes it, and its size can never change under the referee."""

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = aligned(num_bytes)
        self.fd = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.num_bytes)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self.bytes = np.frombuffer(mmap.mmap(self.fd, self.num_bytes), dtype=np.uint8)

    @property
    def fds(self) -> list[int]:
        """What a worker needs to reach it."""
        return [self.fd]

    def write_text(self, text: bytes) -> None:
        """Lay a program's text at the start."""
        self.write(0, np.frombuffer(text, dtype=np.uint8))

    def write(self, at: int, block: np.ndarray) -> None:
        self.bytes[at : at + block.size] = block

    def read(self, at: int, num_bytes: int) -> np.ndarray:
        """A copy, so that the worker can no longer change what is compared."""
        return self.bytes[at : at + num_bytes].copy()

    def close(self) -> None:
        self.bytes = np.empty(0, dtype=np.uint8)  # the map is let go of with the last view of it
        os.close(self.fd)


class Channel:
    """The referee's end of the talk with one worker, and the worker's printed output."""

    def __init__(self, connection: socket.socket, log_fd: int) -> None:
        self._connection = connection
        self._log_fd: int | None = log_fd
        self._log = b""
        connection.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        connection.setblocking(False)
        os.set_blocking(log_fd, False)
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._poll.register(log_fd, select.POLLIN)

    def send(self, message: dict[str, Any]) -> int:
        """Send one frame; what comes back is the time just before, in ns of the clock that stamps the answers."""
        frame = json.dumps(message).encode()
        sent_at = time.time_ns()
        try:
            self._connection.send(frame)
        except OSError as error:
            raise WireError(f"the process has gone: {error}") from None
        return sent_at

    def receive(self, deadline: float) -> tuple[dict[str, Any], int]:
        """The next frame, and when the kernel took it from the sender, in ns.

        The kernel stamps a frame as it is sent, so neither our own delay in waking up nor anything that the sender
        does to its clocks is in the time.

        Args:
            deadline: on time.monotonic.

        Raises:
            DeadlineError: if there is none by then.
            WireError: if the other side has gone or sent something else.
        """
        while True:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise DeadlineError
            for fd, _ in self._poll.poll(left_s * 1000):
                if fd == self._log_fd:
                    self._drain()
                else:
                    return self._read()

    def _read(self) -> tuple[dict[str, Any], int]:
        try:
            frame, ancillary, flags, _ = self._connection.recvmsg(FRAME_BYTES, 256, socket.MSG_DONTWAIT)
        except OSError as error:
            raise WireError(f"the process has gone: {error}") from None
        if not frame:
            raise WireError("the process ended without an answer")
        stamps = [data for _, kind, data in ancillary if kind == _SO_TIMESTAMPNS and len(data) == _TIMESPEC.size]
        if flags & socket.MSG_TRUNC or not stamps:
            raise WireError("the process sent something that is not an answer")
        seconds, nanoseconds = _TIMESPEC.unpack(stamps[0])
        try:
            message = json.loads(frame)
        except (ValueError, RecursionError):
            raise WireError("the process sent something that is not an answer") from None
        if not isinstance(message, dict):
            raise WireError("the process sent something that is not an answer")
        return message, seconds * 1_000_000_000 + nanoseconds

    def _drain(self) -> None:
        assert self._log_fd is not None
        try:
            chunk = os.read(self._log_fd, 1 << 16)
        except BlockingIOError:
            return
        if chunk:
            self._log = (self._log + chunk)[-LOG_BYTES:]
        else:
            self._poll.unregister(self._log_fd)
            os.close(self._log_fd)
            self._log_fd = None

    @property
    def log(self) -> str:
        """The end of what the worker printed: for people, never a result."""
        for _ in range(MAX_LOG_READS):
            if self._log_fd is None or not select.select([self._log_fd], [], [], 0)[0]:
                break
            self._drain()
        return self._log.decode(errors="replace")

    def close(self) -> None:
        self._connection.close()
        if self._log_fd is not None:
            os.close(self._log_fd)
            self._log_fd = None
