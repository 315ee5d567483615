"""NVIDIA's management library: what it knows of a device, and other processes must not be asked."""

import ctypes
from typing import Any


def ask(function: str, device_uuid: str, *arguments: Any) -> bool:
    """Call a function of the library's on a device; whether there is a library and it knew.

    Args:
        function: its name, such as "nvmlDeviceGetMinorNumber".
        arguments: behind the device's handle; what is found goes to where they point.
    """
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    handle = ctypes.c_void_p()
    return not (
        library.nvmlInit_v2()
        or library.nvmlDeviceGetHandleByUUID(device_uuid.encode(), ctypes.byref(handle))
        or getattr(library, function)(handle, *arguments)
    )
