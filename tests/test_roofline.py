"""The bound from the hardware: an alarm with numbers, or silence, and never for a device that is not known."""

import pytest

from tasks.judge.opinions.roofline import CACHE_GAIN, CPU_BYTES_PER_S, MARGIN, alarm, fastest_bytes_per_s


@pytest.mark.parametrize(
    ("candidate_ms", "rings"),
    [(4.0, False), (1.0, False), (1.001 / MARGIN, False), (0.999 / MARGIN, True), (0.01, True), (0.0, True)],
    ids=["slower", "at the bound", "within the margin", "beyond the margin", "far beyond", "no time at all"],
)
def test_only_what_is_clearly_faster_than_memory_raises_an_alarm(candidate_ms, rings):
    assert bool(alarm(10**9, candidate_ms, 1e12)) is rings  # the bound is 1 ms


def test_an_alarm_says_how_much_moved_how_fast_and_what_is_possible():
    assert alarm(64_000_000, 0.005, 3.35e12) == (
        "moves 64.0 MB in 0.005 ms, which is 12.8 TB/s; the hardware allows 3.4 TB/s"
    )


def test_a_program_that_moves_nothing_is_never_too_fast():
    assert alarm(0, 0.001, 1e12) == ""
    assert fastest_bytes_per_s("NVIDIA H200", num_bytes=0, on_cuda=True) is not None


@pytest.mark.parametrize(
    ("device", "terabytes_per_s"),
    [
        ("NVIDIA H100 80GB HBM3", 3.35),
        ("NVIDIA H100 PCIe", 2.0),
        ("NVIDIA H200", 4.8),
        ("NVIDIA GH200 480GB", 4.9),
        ("NVIDIA B200", 8.0),
        ("NVIDIA A100-SXM4-80GB", 2.04),
        ("NVIDIA A100-SXM4-40GB", 1.55),
        ("NVIDIA A100-PCIE-40GB", 1.55),
        ("NVIDIA L40S", 0.86),
        ("NVIDIA GeForce RTX 3090", 0.94),
        ("NVIDIA GeForce RTX 4090", 1.0),
        ("Tesla T4", 0.32),
    ],
)
def test_a_known_device_is_bounded_by_its_memory_once_its_cache_is_full(device, terabytes_per_s):
    found = fastest_bytes_per_s(device, num_bytes=10**12, on_cuda=True)
    assert found == pytest.approx(terabytes_per_s * 1e12, rel=0.04)


@pytest.mark.parametrize("device", ["NVIDIA A10G", "NVIDIA L400", "NVIDIA X1", ""])
def test_an_unknown_device_has_no_bound(device):
    assert fastest_bytes_per_s(device, num_bytes=10**9, on_cuda=True) is None


def test_what_fits_into_the_cache_may_be_faster_but_not_without_limit():
    small, large = (
        fastest_bytes_per_s("NVIDIA H100 80GB HBM3", num_bytes=size, on_cuda=True) for size in (10**6, 10**9)
    )
    assert small == pytest.approx(CACHE_GAIN * 3.36e12)
    assert large < 1.1 * 3.36e12


def test_a_processor_is_bounded_whatever_its_name():
    assert fastest_bytes_per_s("some processor", num_bytes=1, on_cuda=False) == CPU_BYTES_PER_S
