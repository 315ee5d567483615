"""Device memory that two processes share, and the driver calls that the referee needs for it.

The referee makes the memory and hands a file descriptor of it to a worker, as it does with memory of the host: so
outputs lie where the worker can no longer withhold them, and no tensor crosses as an object. Only the driver's library
is used, so that the referee stays free of any framework. Descriptors and not the older IPC handles, because those do
not work between processes that cannot see each other.
"""

import ctypes
import functools
import os
import time
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.errors import MachineError
from tasks.judge import blocks
from tasks.judge.wire import Arena

TEXT_BYTES = 1 << 20
MEMORY_SHARE, ALONE_SHARE = 0.15, 0.6
"""Of the device's memory: what the framework gives to one program, besides what is shared with the referee; and where
nobody else is judged meanwhile, who could want for it. What is not in use is given back between programs."""
ROOM_S = 60.0
JUDGE_ON_CPU = "judge on the processor with --device cpu, or judge.device: cpu in params.yaml"
FLUSH_BYTES = 256 << 20  # five times the largest second-level cache of present devices
_PINNED, _ON_DEVICE, _POSIX_FD, _READ_WRITE = 1, 1, 1, 3
_OUT_OF_MEMORY = 2
_NON_BLOCKING = 1


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Access(ctypes.Structure):
    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class _Properties(ctypes.Structure):
    """CUmemAllocationProp of cuda.h."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("windows_data", ctypes.c_void_p),
        ("compression", ctypes.c_ubyte),
        ("remote_access", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    ]


class Device:
    """One CUDA device as this process sees it. Any thread may use it.

    Methods raise MemoryError where others leave the device no room, and MachineError where the driver fails otherwise.

    Raises:
        MachineError: if there is no such device, no driver, or no memory left for another process on it.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise MachineError(f"there is no cuda:{index} here: {error}; {JUDGE_ON_CPU}") from error
        self._handle, self._context, self._stream = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        granularity = ctypes.c_size_t()
        try:
            self._call("cuInit", 0)
            self._call("cuDeviceGet", ctypes.byref(self._handle), index)
            self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._handle)
            self._call("cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(self._properties), 0)
            self._call("cuStreamCreate", ctypes.byref(self._stream), _NON_BLOCKING)
        except MemoryError as error:
            raise MachineError(
                f"cuda:{index} has no memory left: {error}; end what uses it, or judge on another"
            ) from error
        except MachineError as error:
            raise MachineError(f"cuda:{index} cannot be used: {error}; {JUDGE_ON_CPU}") from error
        self._granularity = granularity.value

    @property
    def name(self) -> str:
        """The model, such as "NVIDIA H100 80GB HBM3"."""
        text = ctypes.create_string_buffer(128)
        self._call("cuDeviceGetName", text, len(text), self._handle)
        return text.value.decode()

    @property
    def uuid(self) -> str:
        """Names the device wherever it is listed, such as "GPU-12345678-...": what other processes may see of it."""
        raw = (ctypes.c_ubyte * 16)()
        self._call("cuDeviceGetUuid_v2", raw, self._handle)
        return f"GPU-{uuid.UUID(bytes=bytes(raw))}"

    @property
    def count(self) -> int:
        """How many devices this process may use."""
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        return count.value

    @property
    def driver_version(self) -> str:
        """The newest CUDA version that the driver knows, such as "13.0"."""
        version = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        return f"{version.value // 1000}.{version.value % 1000 // 10}"

    @property
    def memory_bytes(self) -> tuple[int, int]:
        """What is free and what there is."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def allocate(self, num_bytes: int) -> tuple[int, int, int]:
        """Memory that can be shared: its address here, its size, and a descriptor of it for another process.

        Waits a while for room, since other programs come and go.

        Raises:
            MemoryError: if others leave the device too little memory for too long.
        """
        size = -(-num_bytes // self._granularity) * self._granularity
        handle, fd = ctypes.c_ulonglong(), ctypes.c_int(-1)
        deadline = time.monotonic() + ROOM_S
        create = (ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(self._properties), _U64(0))
        while (code := self._code("cuMemCreate", *create)) == _OUT_OF_MEMORY:
            blocks.free_unused()  # first what this process keeps for itself
            if time.monotonic() > deadline:
                raise MemoryError(f"out of memory: {self.name} had no {size >> 20} MiB left within {ROOM_S:.0f} s")
            time.sleep(0.1)
        self._check("cuMemCreate", code)
        try:
            self._call("cuMemExportToShareableHandle", ctypes.byref(fd), handle, _POSIX_FD, _U64(0))
            return self._map(handle, size), size, fd.value
        except BaseException:
            self._code("cuMemRelease", handle)
            if fd.value >= 0:
                os.close(fd.value)
            raise

    def attach(self, fd: int, num_bytes: int) -> int:
        """The address here of memory that another process made; takes the descriptor's place."""
        handle = ctypes.c_ulonglong()
        self._call("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(fd), _POSIX_FD)
        size = -(-num_bytes // self._granularity) * self._granularity
        address = self._map(handle, size)
        os.close(fd)
        return address

    def free(self, address: int, size: int, fd: int) -> None:
        os.close(fd)
        self._call("cuMemUnmap", _U64(address), ctypes.c_size_t(size))
        self._call("cuMemAddressFree", _U64(address), ctypes.c_size_t(size))

    def copy_to(self, address: int, block: np.ndarray) -> None:
        if block.size:
            block = np.ascontiguousarray(block)
            self._call(
                "cuMemcpyHtoD_v2", _U64(address), ctypes.c_void_p(block.ctypes.data), ctypes.c_size_t(block.size)
            )
            self._call("cuStreamSynchronize", None)  # else it may still be on its way when the worker looks

    def copy_within(self, addresses: Sequence[int], several: blocks.Blocks) -> None:
        """Copy blocks that are on the device itself, and wait once."""
        for address, block in zip(addresses, several, strict=True):
            source: int = block.data.ptr
            self._call("cuMemcpyDtoDAsync_v2", _U64(address), _U64(source), ctypes.c_size_t(block.size), None)
        self._call("cuStreamSynchronize", None)

    def copy_from(self, address: int, num_bytes: int) -> np.ndarray:
        block = np.empty(num_bytes, dtype=np.uint8)
        if num_bytes:
            self._call("cuMemcpyDtoH_v2", ctypes.c_void_p(block.ctypes.data), _U64(address), ctypes.c_size_t(num_bytes))
        return block

    def synchronize(self) -> None:
        """Wait for all that this process has asked of the device."""
        self._call("cuCtxSynchronize")

    def fill(self, address: int, num_bytes: int, value: int) -> None:
        """Overwrite memory, and wait until that is done, but for no copy of another thread."""
        self._call("cuMemsetD8Async", _U64(address), ctypes.c_ubyte(value), ctypes.c_size_t(num_bytes), self._stream)
        self._call("cuStreamSynchronize", self._stream)

    @functools.cached_property
    def _properties(self) -> _Properties:
        return _Properties(
            type=_PINNED, handle_types=_POSIX_FD, location=_Location(type=_ON_DEVICE, id=self._handle.value)
        )

    def _map(self, handle: ctypes.c_ulonglong, size: int) -> int:
        address = ctypes.c_ulonglong()
        self._call(
            "cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(size), ctypes.c_size_t(0), _U64(0), _U64(0)
        )
        try:
            self._call("cuMemMap", address, ctypes.c_size_t(size), ctypes.c_size_t(0), handle, _U64(0))
            access = _Access(location=self._properties.location, flags=_READ_WRITE)
            self._call("cuMemSetAccess", address, ctypes.c_size_t(size), ctypes.byref(access), ctypes.c_size_t(1))
        except BaseException:
            self._code("cuMemUnmap", address, ctypes.c_size_t(size))
            self._code("cuMemAddressFree", address, ctypes.c_size_t(size))
            raise
        self._code("cuMemRelease", handle)  # the mapping keeps the memory alive
        return address.value

    def _code(self, name: str, *arguments: Any) -> int:
        if self._context:
            self._driver.cuCtxSetCurrent(self._context)  # contexts are current per thread
        code: int = getattr(self._driver, name)(*arguments)
        return code

    def _call(self, name: str, *arguments: Any) -> None:
        self._check(name, self._code(name, *arguments))

    def _check(self, name: str, code: int) -> None:
        if code:
            words = ctypes.c_char_p()
            self._driver.cuGetErrorString(code, ctypes.byref(words))
            raise (MemoryError if code == _OUT_OF_MEMORY else MachineError)(
                f"{name} failed: {(words.value or b'unknown error').decode()} ({code})"
            )


_U64 = ctypes.c_ulonglong


class DeviceArena:
    """An arena on a device. What no device computes with, a program's text and what it draws, goes through the host."""

    def __init__(self, device: Device, num_bytes: int, *, drawn_bytes: int) -> None:
        self._device = device
        self._address, self.num_bytes, self._memory_fd = device.allocate(num_bytes)
        try:
            self._host = Arena(TEXT_BYTES + drawn_bytes)
        except OSError:
            device.free(self._address, self.num_bytes, self._memory_fd)
            raise

    @property
    def fds(self) -> list[int]:
        """What a worker needs to reach it: the host's part and the device's."""
        return [self._host.fd, self._memory_fd]

    def write_text(self, text: bytes) -> None:
        self._host.write_text(text)

    def write(self, at: int, block: np.ndarray) -> None:
        """Lay in what the host has."""
        self._device.copy_to(self._address + at, block)

    def write_blocks(self, places: Sequence[int], several: blocks.Blocks) -> None:
        """Lay several in, wherever they are, at these bytes from the start."""
        if all(map(blocks.is_on_host, several)):
            for at, block in zip(places, several, strict=True):
                self.write(at, block)
        else:
            self._device.copy_within([self._address + at for at in places], several)

    def read(self, at: int, num_bytes: int) -> np.ndarray:
        """A copy, so that the worker can no longer change what is compared."""
        return self._device.copy_from(self._address + at, num_bytes)

    def read_block(self, at: int, num_bytes: int) -> np.ndarray:
        """A copy of inputs or outputs, on the device if CuPy is installed."""
        return self.read_blocks([at], num_bytes)[0]

    def read_blocks(self, places: Sequence[int], num_bytes: int) -> blocks.Blocks:
        """Copies of several of one size."""
        if not blocks.has_cupy():
            return [self.read(at, num_bytes) for at in places]
        return blocks.copied_on_device([self._address + at for at in places], num_bytes, self._device.index)

    def placed(self, block: np.ndarray) -> np.ndarray:
        """Inputs that were drawn, there as well."""
        return blocks.copied_to_device(block, self._device.index) if blocks.has_cupy() else block

    def read_host(self, at: int, num_bytes: int) -> np.ndarray:
        """A copy of what the worker laid into the part on the host."""
        return self._host.read(at, num_bytes)

    def close(self) -> None:
        self._host.close()
        self._device.free(self._address, self.num_bytes, self._memory_fd)


def attached_memory(fd: int, num_bytes: int, *, memory_share: float) -> Any:
    """The memory of a DeviceArena as a flat byte tensor; for workers, whose only device is number 0.

    Args:
        memory_share: of the device's memory, for all that the framework of this process allocates.
    """
    import torch

    torch.cuda.init()
    torch.cuda.set_per_process_memory_fraction(memory_share)
    view = _Bytes(Device(0).attach(fd, num_bytes), num_bytes)
    return torch.as_tensor(view, device="cuda:0")


class _Bytes:
    """Device memory in the form that frameworks agree on."""

    def __init__(self, address: int, num_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (num_bytes,), "typestr": "|u1", "data": (address, False), "strides": None, "version": 3,
        }  # fmt: skip
