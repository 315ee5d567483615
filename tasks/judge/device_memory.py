"""Whose is the memory of a device? The management library knows; the driver itself only tells how much is left."""

import ctypes
import re

from tasks.judge import nvml

MAX_PROCESSES = 256
FULL = "of which next to none was left"
_RAN_OUT = re.compile(rf"out of memory|ALLOC(ATION)?_FAILED|CUBLAS_STATUS_NOT_INITIALIZED|{FULL}", re.IGNORECASE)
"""What CUDA, PyTorch and we say of a full device, and what cuBLAS, cuDNN and the like do."""
_UNTOLD = "CUDNN_STATUS_INTERNAL_ERROR"
"""All that cuDNN says of memory that it could not have, and of mistakes of its own."""


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t of nvml.h."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used_bytes", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


def is_about_full_device(words: str) -> bool:
    """Whether a failure says that there was no memory left: true of whoever comes when others have filled it.

    >>> is_about_full_device("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
    True
    >>> is_about_full_device("CUDA error: an illegal memory access was encountered")
    False
    """
    return _RAN_OUT.search(words) is not None


def may_be_about_full_device(words: str) -> bool:
    """Whether a failure may be due to others that have filled a device; only who is alone with it can tell."""
    return is_about_full_device(words) or _UNTOLD in words


def used_bytes(device_uuid: str, pid: int) -> int:
    """What a process holds of a device's memory; 0 where that cannot be known."""
    count, rows = ctypes.c_uint(MAX_PROCESSES), (_Process * MAX_PROCESSES)()
    is_known = nvml.ask("nvmlDeviceGetComputeRunningProcesses_v3", device_uuid, ctypes.byref(count), rows)
    known = rows[: count.value] if is_known else ()
    return sum(row.used_bytes for row in known if row.pid == pid and row.used_bytes < 1 << 63)
