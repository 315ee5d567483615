"""What a verdict says about where it was made."""

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any


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


def describe(facts: Mapping[str, Any], walls: list[str]) -> dict[str, str]:
    """Versions and walls, as strings that history can compare.

    Args:
        facts: what the fork server said about itself.
    """
    return {
        "torch": str(facts["torch"]),
        "python": str(facts["python"]),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "walls": ",".join(walls),
    }
