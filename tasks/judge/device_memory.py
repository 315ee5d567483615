"""Whose is the memory of a device? The management library knows; the driver itself only tells how much is left."""

import ctypes

MAX_PROCESSES = 256


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t of nvml.h."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used_bytes", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


def used_bytes(device_uuid: str, pid: int) -> int:
    """What a process holds of a device's memory; 0 where that cannot be known."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return 0
    handle, count, rows = ctypes.c_void_p(), ctypes.c_uint(MAX_PROCESSES), (_Process * MAX_PROCESSES)()
    failed = (
        library.nvmlInit_v2()
        or library.nvmlDeviceGetHandleByUUID(device_uuid.encode(), ctypes.byref(handle))
        or library.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), rows)
    )
    known = () if failed else rows[: count.value]
    return sum(row.used_bytes for row in known if row.pid == pid and row.used_bytes < 1 << 63)
