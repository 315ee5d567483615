"""The files through which programs reach the device that they are judged on, and no other of the machine's."""

import ctypes
import glob
import os
import re
from collections.abc import Iterable, Sequence

from tasks.judge import nvml

_OF_ONE_DEVICE = re.compile(r"nvidia\d+")


def device_files(device_uuid: str) -> list[str]:
    """Names below /dev of the files that the device of this UUID needs.

    Those of all NVIDIA devices where the management library does not tell which is its.
    """
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
    return [name for name in names if name == own or not _OF_ONE_DEVICE.fullmatch(name)]


def num_devices(names: Iterable[str]) -> int:
    """How many devices can be reached through these files.

    >>> num_devices(["nvidia-uvm", "nvidia1", "nvidiactl"])
    1
    """
    return sum(_OF_ONE_DEVICE.fullmatch(name) is not None for name in names)
