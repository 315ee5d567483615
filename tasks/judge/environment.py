"""What a verdict says about where it was made."""

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.errors import MachineError
from tasks.judge.cuda import Device


def device_model() -> str:
    """The processor's name as the kernel tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def model_of(device: str) -> str:
    """The model of "cpu" or of "cuda:0" and so on, as a judge names it that is open there.

    Raises:
        MachineError: if there is no such device.
    """
    return device_model() if device == "cpu" else Device(int(device.removeprefix("cuda:"))).name


def describe(facts: Mapping[str, Any], walls: list[str], device: Device | None) -> dict[str, str]:
    """Versions and walls, as strings that history can compare.

    Args:
        facts: what the fork server said about itself.
    """
    driver = {"driver": device.driver_version} if device else {}
    return driver | {
        "torch": str(facts["torch"]),
        "python": str(facts["python"]),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "walls": ",".join(walls),
    }


def require_linux() -> None:
    """Refuse early where workers could be neither shared memory with nor ended for sure.

    Raises:
        MachineError: naming what is missing.
    """
    missing = [name for name in ("fork", "memfd_create", "pidfd_open", "sched_setaffinity") if not hasattr(os, name)]
    if not Path("/proc/self/maps").exists():
        missing.append("/proc")
    if missing:
        raise MachineError(f"the judge needs Linux with {', '.join(missing)}, which this machine lacks")
