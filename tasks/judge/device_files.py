"""The files through which programs reach the device that they are judged on, and no other of the machine's."""

import ctypes
import glob
import os
from collections.abc import Sequence

from tasks.judge import nvml


def device_files(device_uuid: str) -> list[str]:
    """Their names below /dev; those of all NVIDIA devices where nobody knows which is which."""
    present = [os.path.basename(path) for path in sorted(glob.glob("/dev/nvidia*")) if not os.path.isdir(path)]
    number = ctypes.c_uint()
    if not nvml.ask("nvmlDeviceGetMinorNumber", device_uuid, ctypes.byref(number)):
        return present
    return without_others(present, number.value)


def without_others(names: Sequence[str], number: int) -> list[str]:
    """The file of the device of this number, and those that belong to none.

    >>> without_others(["nvidia-uvm", "nvidia0", "nvidia1", "nvidiactl"], 1)
    ['nvidia-uvm', 'nvidia1', 'nvidiactl']
    >>> without_others(["nvidia-uvm", "nvidia0", "nvidiactl"], 4)  # numbered in another way here
    ['nvidia-uvm', 'nvidia0', 'nvidiactl']
    """
    own = f"nvidia{number}"
    if own not in names:
        return list(names)
    return [name for name in names if name == own or not name.removeprefix("nvidia").isdigit()]
