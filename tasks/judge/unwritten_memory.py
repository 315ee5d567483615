"""What memory of the host holds where nobody has written to it. Runs inside a worker."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

M_PERTURB = -6  # of malloc.h
SET_ALLOCATOR = getattr(ctypes.CDLL(None), "mallopt", None)  # of glibc alone


@contextmanager
def filled_memory(filling: int) -> Iterator[None]:
    """Let memory of the host be full of what nobody wrote, when it is handed out and when it was given back.

    Without glibc it is left as it is, and so is what glibc hands out again at once, of 1 KB and less.

    Args:
        filling: byte that freed memory is filled with, and new memory with its complement.
    """
    if SET_ALLOCATOR is None:
        yield
        return
    SET_ALLOCATOR(M_PERTURB, filling)
    try:
        yield
    finally:
        SET_ALLOCATOR(M_PERTURB, 0)
