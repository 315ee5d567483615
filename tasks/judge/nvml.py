"""NVIDIA's management library, asked about one device without a context on it."""

import ctypes
from typing import Any


def ask(function: str, device_uuid: str, *arguments: Any) -> bool:
    """Call a function of the library's on a device; returns whether the library is there and answered.

    Args:
        function: its name, such as "nvmlDeviceGetMinorNumber".
        arguments: behind the device's handle; what is found goes to where they point.
    """
    handle = ctypes.c_void_p()
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        return not (
            library.nvmlInit_v2()
            or library.nvmlDeviceGetHandleByUUID(device_uuid.encode(), ctypes.byref(handle))
            or getattr(library, function)(handle, *arguments)
        )
    except (OSError, AttributeError):  # no library, or one that has no such function yet
        return False
