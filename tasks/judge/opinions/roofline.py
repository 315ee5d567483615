"""A bound from the hardware: no program moves its inputs, outputs and weights faster than memory delivers them.

It raises an alarm and decides nothing. Algebra that needs only a part of an input is honestly faster than the bound, so
is what reads a few rows of a table; a bound that refused them would refuse the best candidates.
"""

import re

MARGIN = 1.25
"""Faster than the bound by this factor is an alarm: less is within the noise of timing."""
CPU_BYTES_PER_S = 200e9
"""Of one core, whatever its model: 64 bytes a cycle from the second-level cache. Memory alone gives a tenth of it, so
an alarm on a processor means something, and silence means nothing."""
CACHE_GAIN = 6.0
"""No second-level cache of these devices reads more than this many times as fast as their memory."""

# Memory bandwidth in TB/s and second-level cache in MB, of the best variant of each name as torch tells it: what is too
# low would be no bound. The first name found within the device's name counts.
_DEVICES = (
    (r"GB200|B200", 8.0, 126),
    (r"GH200", 4.9, 60),
    (r"H200", 4.8, 60),
    (r"H100 NVL", 3.94, 60),
    (r"H100 PCIe", 2.04, 50),
    (r"H100", 3.36, 50),
    (r"H20", 4.0, 60),
    (r"A100.*40GB", 1.56, 40),
    (r"A100", 2.04, 40),
    (r"A800", 2.04, 40),
    (r"A40", 0.70, 6),
    (r"A30", 0.94, 24),
    (r"A10", 0.61, 6),
    (r"L40S?", 0.87, 96),
    (r"L4", 0.30, 48),
    (r"V100", 1.14, 6),
    (r"T4", 0.33, 4),
    (r"RTX 6000 Ada", 0.97, 96),
    (r"RTX A6000", 0.77, 6),
    (r"RTX 5090", 1.80, 96),
    (r"RTX 4090", 1.01, 72),
    (r"RTX 3090 Ti", 1.01, 6),
    (r"RTX 3090", 0.94, 6),
)


def fastest_bytes_per_s(device: str, *, num_bytes: int, on_cuda: bool) -> float | None:
    """The most that a device can read and write on average over so many bytes; None when the device is not known.

    What fits into a CUDA device's second-level cache may come from there: inputs that were just made lie in it.

    Args:
        device: the model's name, as in Verdict.device.
    """
    if not on_cuda:
        return CPU_BYTES_PER_S
    for name, terabytes_per_s, cache_megabytes in _DEVICES:
        if re.search(rf"\b{name}\b", device):
            memory = terabytes_per_s * 1e12
            cached = min(num_bytes, cache_megabytes * 1e6)
            seconds = cached / (memory * CACHE_GAIN) + (num_bytes - cached) / memory
            return num_bytes / seconds if num_bytes > 0 else memory
    return None


def alarm(num_bytes: int, candidate_ms: float, bytes_per_s: float) -> str:
    """A sentence with the numbers when a time is below what the hardware allows, else nothing.

    Args:
        num_bytes: the fewest that must move: inputs, outputs and weights, once each.
        bytes_per_s: the most that the device delivers.

    >>> alarm(8_000_000, 0.001, 2e12)
    'moves 8.0 MB in 0.001 ms, which is 8.0 TB/s; the hardware allows 2.0 TB/s'
    >>> alarm(8_000_000, 0.004, 2e12)
    ''
    """
    bound_ms = num_bytes / bytes_per_s * 1e3
    if candidate_ms * MARGIN >= bound_ms:
        return ""
    rate = num_bytes / (candidate_ms / 1e3) if candidate_ms > 0 else float("inf")
    return (
        f"moves {num_bytes / 1e6:.1f} MB in {candidate_ms:.3g} ms, which is {rate / 1e12:.1f} TB/s; "
        f"the hardware allows {bytes_per_s / 1e12:.1f} TB/s"
    )
