"""Where the bytes of inputs and outputs are, a block for each call: in the host's memory, or on the device.

On a device with CuPy they stay there, since copying and comparing a hundred megabytes takes seconds on a core. CuPy's
arrays take numpy's functions (NEP 18), so what computes with blocks is written once. Without CuPy blocks come to the
host.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

logger = logging.getLogger(__name__)

Blocks = Sequence[np.ndarray] | np.ndarray
"""Several of one size: on a device uint8 of shape (blocks, bytes)."""
ROW_PIECE_ITEMS = 1024
"""What a row is cut into where it is reduced."""
DEVICE_SHARE, ALONE_SHARE = 0.15, 0.6
"""Of the device's memory: what all blocks of this process may take at most; and where nobody else is judged. To study
a problem takes up to 100 bytes for each value of its output, and little else is on the device meanwhile."""


@cache
def has_cupy() -> bool:
    """Whether CuPy is installed, and does here what is asked of it."""
    # Or CuPy compiles every reduction with CUB's headers, for 2 to 4 s each, and once more where there are other sizes.
    os.environ["CUPY_ACCELERATORS"] = ""
    try:
        import cupy

        from tasks.judge import block_kernels

        block_kernels.compile_all(cupy.asarray)
    except (ImportError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "cupy":
            return False
        logger.warning("CuPy cannot be used, so inputs and outputs come to the host, which takes long: %r", error)
        return False
    return True


def free_unused() -> None:
    """Give memory back that CuPy keeps for later blocks."""
    if has_cupy():
        import cupy

        cupy.get_default_memory_pool().free_all_blocks()


@contextmanager
def more_memory(index: int) -> Iterator[None]:
    """Let blocks on the device with this index take more of its memory meanwhile, and keep nothing before and after.

    Within another such time nothing changes but that.
    """
    if not has_cupy():
        yield
        return
    pool = _cupy_on(index).get_default_memory_pool()
    usual_bytes = pool.get_limit()
    pool.free_all_blocks()
    pool.set_limit(fraction=ALONE_SHARE)
    try:
        yield
    finally:
        pool.free_all_blocks()
        pool.set_limit(size=usual_bytes)


def is_on_host(block: np.ndarray) -> bool:
    return isinstance(block, np.ndarray)


def on_host(block: np.ndarray) -> np.ndarray:
    """The block itself, or a copy of it that the host can read."""
    return block if is_on_host(block) else block.get()  # type: ignore[attr-defined]


def random_integers(rng: np.random.Generator, high: int, like: np.ndarray, dtype: Any = np.int64) -> np.ndarray:
    """As many whole numbers from 0 to below `high` as an array has values, made where it is."""
    if is_on_host(like):
        return rng.integers(0, high, like.size, dtype=dtype)
    import cupy

    made: np.ndarray = cupy.random.default_rng(int(rng.integers(1 << 60))).integers(0, high, like.size)
    return made.astype(dtype)


def as_rows(blocks: Blocks) -> np.ndarray:
    """Several blocks as uint8 of shape (blocks, bytes); a copy only where several are apart."""
    if not isinstance(blocks, list | tuple):
        return blocks  # type: ignore[return-value]
    return blocks[0][None] if len(blocks) == 1 else np.stack(blocks)


def of_all(reduce: Callable[..., Any], values: np.ndarray) -> Any:
    """What np.max, np.any or np.sum reduces all values to, wherever those are."""
    return reduce(values) if is_on_host(values) else of_rows(reduce, values.reshape(1, -1))[0]


def of_rows(reduce: Callable[..., Any], rows: np.ndarray) -> Any:
    """What np.max, np.any or np.sum reduces each row to; where it sums, of a dtype that holds the sum.

    On a device by pieces of the rows first: there is one block of threads for each result.
    """
    whole = rows.shape[1] // ROW_PIECE_ITEMS * ROW_PIECE_ITEMS
    if is_on_host(rows) or whole <= ROW_PIECE_ITEMS:
        return reduce(rows, axis=1)
    pieces = reduce(rows[:, :whole].reshape(len(rows), -1, ROW_PIECE_ITEMS), axis=2)
    return of_rows(reduce, pieces if whole == rows.shape[1] else np.concatenate([pieces, rows[:, whole:]], axis=1))


def place_of(find: Callable[..., Any], values: np.ndarray) -> int:
    """The index of the value that np.argmax or np.argmin finds, wherever the values are."""
    if is_on_host(values) or values.size <= ROW_PIECE_ITEMS:
        return int(find(values))
    whole = values.size // ROW_PIECE_ITEMS * ROW_PIECE_ITEMS
    firsts = on_host(find(values[:whole].reshape(-1, ROW_PIECE_ITEMS), axis=1))
    places = np.append(firsts + np.arange(0, whole, ROW_PIECE_ITEMS), np.arange(whole, values.size))
    return int(places[find(on_host(values[np.asarray(places, like=values)]))])


def copied_to_device(block: np.ndarray, index: int) -> np.ndarray:
    """A copy on the device with this index."""
    placed: np.ndarray = _cupy_on(index).asarray(block)
    return placed


def copied_on_device(addresses: Sequence[int], num_bytes: int, index: int) -> np.ndarray:
    """Copies of pieces of the device's memory that CuPy did not make: uint8 of shape (addresses, bytes)."""
    cupy = _cupy_on(index)
    rows: np.ndarray = cupy.empty((len(addresses), num_bytes), dtype=np.uint8)
    for row, address in zip(rows, addresses, strict=True):
        memory = cupy.cuda.UnownedMemory(address, num_bytes, None)
        row.data.copy_from_device_async(cupy.cuda.MemoryPointer(memory, 0), num_bytes)
    cupy.cuda.get_current_stream().synchronize()  # before the worker goes on and writes there
    return rows


def _cupy_on(index: int) -> Any:
    """CuPy, with this device the calling thread's: later operations on its blocks must find it so."""
    import cupy

    cupy.cuda.Device(index).use()
    _limit_memory(index)
    return cupy


@cache
def _limit_memory(index: int) -> None:
    import cupy

    cupy.get_default_memory_pool().set_limit(fraction=DEVICE_SHARE)
