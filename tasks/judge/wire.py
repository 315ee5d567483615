"""How the referee and its worker processes talk: small frames, and bytes in memory that the referee owns.

Nothing here trusts the other side. A frame is capped, must be one JSON object or words of call_frames.py, and carries
the kernel's own time of sending; tensors never cross as objects, only as raw bytes at agreed places.
"""

import array
import fcntl
import json
import mmap
import os
import re
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.judge.blocks import Blocks

FRAME_BYTES = 192 << 10  # a network of 200 layers names a thousand weights; the kernel's own limit is near 208 KiB
LOG_BYTES = 4_000
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
MAX_LOG_READS = 64
ALIGNMENT = 4_096
MAX_TENSORS = 256
MAX_DIMENSIONS = 16
MEANWHILE_S = 0.1
MAX_PATH_CHARS = 200

# Width of each dtype that may cross. Anything else cannot be compared and is refused by name.
ITEM_BYTES = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint16": 2, "uint32": 4, "uint64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip

_SO_TIMESTAMPNS = 35  # not in the socket module; the value of every Linux architecture but parisc and sparc
_TIMESPEC = struct.Struct("qq")
_FLAGS = socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC


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
    path: str = ""
    """The keys under which an output stands in what forward returned: "['mask']"."""

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
        """The spec that to_json wrote; a row of two entries is a contiguous tensor, a third is its path where text.

        Raises:
            WireError: if it is anything else, or absurd.
        """
        if not isinstance(row, list) or len(row) not in (2, 3):
            raise WireError(f"not a tensor's form: {str(row)[:200]}")
        dtype, shape, third = row[0], row[1], row[2] if len(row) == 3 else ""
        path, stride = (third, _contiguous(shape)) if isinstance(third, str) else ("", third)
        if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
            raise WireError(f"a tensor of dtype {readable(str(dtype)[:80])} cannot be compared")
        for sizes in (shape, stride):
            if not (
                isinstance(sizes, list)
                and len(sizes) <= MAX_DIMENSIONS
                and all(type(size) is int and 0 <= size < 1 << 40 for size in sizes)
            ):
                raise WireError(f"not a tensor's sizes: {str(sizes)[:200]}")
        if len(shape) != len(stride):
            raise WireError(f"shape {shape} and strides {stride} differ in length")
        return cls(dtype=dtype, shape=tuple(shape), stride=tuple(stride), path=readable(path[:MAX_PATH_CHARS]))


def readable(text: str) -> str:
    """What a process says, without what nothing can print or store, or a terminal would obey.

    >>> readable("red: \\x1b[31m, half of a pair: \\ud800")
    'red: [31m, half of a pair: ?'
    """
    return _CONTROLS.sub("", text.encode("utf-8", "replace").decode())


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

    def write_blocks(self, places: Sequence[int], blocks: Blocks) -> None:
        """Lay several in, at these bytes from the start."""
        for at, block in zip(places, blocks, strict=True):
            self.write(at, block)

    def read(self, at: int, num_bytes: int) -> np.ndarray:
        """A copy, so that the worker can no longer change what is compared."""
        return self.bytes[at : at + num_bytes].copy()

    def read_block(self, at: int, num_bytes: int) -> np.ndarray:
        """A copy of inputs or outputs, where there is most to be done with them."""
        return self.read(at, num_bytes)

    def read_blocks(self, places: Sequence[int], num_bytes: int) -> Blocks:
        """Copies of several of one size, at these bytes from the start."""
        return [self.read_block(at, num_bytes) for at in places]

    def placed(self, block: np.ndarray) -> np.ndarray:
        """Inputs that were drawn, there as well."""
        return block

    def read_host(self, at: int, num_bytes: int) -> np.ndarray:
        """A copy of what the worker laid into the part that the host has, which here is all of it."""
        return self.read(at, num_bytes)

    def close(self) -> None:
        self.bytes = np.empty(0, dtype=np.uint8)  # the map is let go of with the last view of it
        os.close(self.fd)


def encoded(message: dict[str, Any]) -> bytes:
    """A message as a frame."""
    return json.dumps(message).encode()


def decoded(frame: bytes) -> dict[str, Any]:
    """The message in a frame.

    Raises:
        WireError: if the frame is anything but one JSON object.
    """
    try:
        message = json.loads(frame)
    except (ValueError, RecursionError):
        raise WireError("the process sent something that is not an answer") from None
    if not isinstance(message, dict):
        raise WireError("the process sent something that is not an answer")
    return message


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

    def send(self, frame: bytes) -> None:
        """Send one frame."""
        try:
            self._connection.send(frame)
        except OSError as error:
            raise WireError(f"the process has gone: {error}") from None

    def receive(self, deadline: float, meanwhile: Callable[[], None] | None = None) -> tuple[bytes, int]:
        """The next frame, and when the kernel took it from the sender, in ns.

        The kernel stamps a frame as it is sent, so neither our own delay in waking up nor anything that the sender
        does to its clocks is in the time. The frame is not looked into yet: whoever sent it should be stopped first.

        Args:
            deadline: on time.monotonic.
            meanwhile: called now and then while there is none.

        Raises:
            DeadlineError: if there is none by then.
            WireError: if the other side has gone or sent something else.
        """
        while True:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise DeadlineError
            if meanwhile is not None:
                meanwhile()
                left_s = min(left_s, MEANWHILE_S)
            for fd, _ in self._poll.poll(left_s * 1000):
                if fd == self._log_fd:
                    self._drain()
                else:
                    return self._read()

    def _read(self) -> tuple[bytes, int]:
        try:
            frame, ancillary, flags, _ = self._connection.recvmsg(FRAME_BYTES, 256, _FLAGS)
        except OSError as error:
            raise WireError(f"the process has gone: {error}") from None
        if _closed_handles(ancillary):
            raise WireError("the process sent something that is not an answer")
        if not frame:
            raise WireError("the process ended without an answer")
        stamps = [data for _, kind, data in ancillary if kind == _SO_TIMESTAMPNS and len(data) == _TIMESPEC.size]
        if flags & socket.MSG_TRUNC or not stamps:
            raise WireError("the process sent something that is not an answer")
        seconds, nanoseconds = _TIMESPEC.unpack(stamps[0])
        return frame, seconds * 1_000_000_000 + nanoseconds

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


def _closed_handles(ancillary: list[tuple[int, int, bytes]]) -> int:
    """Close the files that somebody sent along, which are open here by now; how many these were."""
    handles = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            handles.frombytes(data[: len(data) - len(data) % handles.itemsize])
    for handle in handles:
        os.close(handle)
    return len(handles)
