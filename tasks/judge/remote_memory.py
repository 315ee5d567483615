"""Reading the memory of a stopped worker: outputs are taken from where its program left them.

So nothing has to be copied for the referee while the clock runs, and no program can save a copy that others pay for.
The kernel permits it to whoever may trace the process; where it does not, workers copy their outputs into the arena.
"""

import ctypes
import os
from collections.abc import Sequence

import numpy as np

from tasks.judge.wire import WireError

PROBE = b"this worker can be read"


class _Piece(ctypes.Structure):
    """struct iovec."""

    _fields_ = [("address", ctypes.c_void_p), ("num_bytes", ctypes.c_size_t)]


_libc = ctypes.CDLL(None, use_errno=True)


def read(pid: int, pieces: Sequence[tuple[int, int]], starts: Sequence[int], num_bytes: int) -> np.ndarray:
    """A copy of pieces of a process's memory, laid one after the other.

    Args:
        pieces: address there and number of bytes, as the process says itself.
        starts: where each piece is laid in the copy.
        num_bytes: of the copy.

    Raises:
        WireError: if there is no such memory, or it may not be read.
    """
    block = np.zeros(num_bytes, dtype=np.uint8)
    wanted = [(address, size, start) for (address, size), start in zip(pieces, starts, strict=True) if size]
    if not wanted:
        return block
    theirs = (_Piece * len(wanted))(*(_Piece(address, size) for address, size, _ in wanted))
    ours = (_Piece * len(wanted))(*(_Piece(block.ctypes.data + start, size) for _, size, start in wanted))
    count = ctypes.c_ulong(len(wanted))
    num_read = _libc.process_vm_readv(pid, ours, count, theirs, count, ctypes.c_ulong(0))
    if num_read != sum(size for _, size, _ in wanted):
        reason = os.strerror(ctypes.get_errno()) if num_read < 0 else "only a part of it is there"
        raise WireError(f"the outputs cannot be read where the process says they are: {reason}")
    return block


def is_readable(pid: int, address: int) -> bool:
    """Whether this process may be read, tried on the probe that it laid out."""
    try:
        return read(pid, [(address, len(PROBE))], [0], len(PROBE)).tobytes() == PROBE
    except WireError:
        return False
