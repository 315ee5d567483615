"""Outputs are read from the memory of the process that made them, or copied where that is not allowed."""

import os
from collections.abc import Iterator

import numpy as np
import pytest

from tasks.judge import remote_memory
from tasks.judge.judge import Judge
from tasks.judge.wire import WireError
from tests.judge_builders import KERNELS, PARAMS, kernel

VALUES = np.arange(64, dtype=np.uint8)
UNMAPPED = 1 << 40


def test_pieces_are_laid_where_they_belong_with_nothing_between() -> None:
    at = VALUES.ctypes.data
    block = remote_memory.read(os.getpid(), [(at + 8, 4), (at, 0), (at + 60, 4)], [0, 4, 8], 12)
    assert block.tolist() == [8, 9, 10, 11, 0, 0, 0, 0, 60, 61, 62, 63]


@pytest.mark.parametrize(
    "piece",
    [
        pytest.param((UNMAPPED, 4), id="nothing there"),
        pytest.param((0, 4), id="null"),
    ],
)
def test_memory_that_is_not_there_is_an_error_of_the_worker(piece: tuple[int, int]) -> None:
    with pytest.raises(WireError, match="cannot be read where the process says"):
        remote_memory.read(os.getpid(), [piece], [0], 4)


def test_a_process_is_readable_only_where_its_probe_stands() -> None:
    probe = np.frombuffer(remote_memory.PROBE, dtype=np.uint8)
    assert remote_memory.is_readable(os.getpid(), probe.ctypes.data)
    assert not remote_memory.is_readable(os.getpid(), VALUES.ctypes.data)
    assert not remote_memory.is_readable(os.getpid(), UNMAPPED)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(PARAMS) as judge:
        yield judge


@pytest.fixture
def judge_that_may_not_read(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> Judge:
    monkeypatch.setattr(remote_memory, "is_readable", lambda *_: False)
    return judge


@pytest.mark.parametrize(
    "name", ["honest/same", "honest/strided_output", "hostile/static_buffer", "hostile/leaves_the_work_to_a_child"]
)
def test_where_memory_may_not_be_read_outputs_are_copied_and_verdicts_are_the_same(
    name: str, judge_that_may_not_read: Judge
) -> None:
    specimen = kernel(KERNELS / f"{name}.py")
    verdict = judge_that_may_not_read.judge(specimen.problem, specimen.candidate, seed=0)
    assert verdict.status in (*specimen.expected, "unstable"), verdict.detail
