"""A device that others have filled: nobody is blamed, no wall is given up, and nothing is left open."""

import ctypes
import logging
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tasks.errors import FullDeviceError, MachineError
from tasks.judge import blocks, lease
from tasks.judge.cuda import ALONE_SHARE, Device
from tasks.judge.device_memory import is_about_full_device
from tasks.judge.evidence import RefusedError
from tasks.judge.fork_server import ForkServer
from tasks.judge.judge import FULL_REMEDY, Judge
from tasks.judge.lease import Lease
from tasks.judge.pair import Pair
from tasks.judge.processes import WorkerProcess
from tasks.judge.study import BadProblemError
from tasks.judge.verdict import Status
from tasks.judge.wire import WireError
from tests.judge_builders import KERNELS, PARAMS, RIGHT, kernel

HONEST = kernel(KERNELS / "honest" / "same.py")


class FullDevice:
    """A GPU on which others leave no room."""

    uuid = f"full-{os.getpid()}"

    def allocate(self, num_bytes: int) -> tuple[int, int, int]:
        raise MemoryError(f"out of memory: a GPU had no {num_bytes >> 20} MiB left within 60 s")


class FullDriver:
    """A driver that has memory and cannot show it to a process; counts what is taken and given back."""

    def __init__(self, failing: str) -> None:
        self.failing = failing
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            self.called.append(name)
            if name == "cuMemExportToShareableHandle":
                arguments[0]._obj.value = os.open(os.devnull, os.O_RDONLY)
            if name == "cuGetErrorString":
                arguments[1]._obj.value = b"out of memory"
            return 2 if name == self.failing else 0

        return call


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ForkServer]:
    server = ForkServer(tmp_path, cast(Device, FullDevice()))
    yield server
    server.close()


def num_open() -> int:
    return len(os.listdir("/proc/self/fd"))


def spawned(server: ForkServer) -> Any:
    return server.spawn(arena_bytes=1 << 20, core=0, uid=None, memory_bytes=1 << 30, cpu_s=60)


def test_a_worker_that_finds_no_room_does_not_start_and_leaves_nothing_open(server: ForkServer) -> None:
    before = num_open()
    for _ in range(3):
        with pytest.raises(FullDeviceError, match="no worker can start: out of memory: a GPU had no 1 MiB left"):
            spawned(server)
    assert num_open() == before


@pytest.mark.parametrize(
    "failing", ["cuMemExportToShareableHandle", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"]
)
def test_memory_that_cannot_be_mapped_is_given_back(failing: str) -> None:
    device = Device.__new__(Device)
    driver = FullDriver(failing)
    vars(device).update(_driver=driver, _context=None, _granularity=1 << 21, _handle=types.SimpleNamespace(value=0))
    before = num_open()
    with pytest.raises(MemoryError, match=failing):
        device.allocate(1 << 20)
    assert num_open() == before
    assert driver.called.count("cuMemRelease") == 1
    was_reserved = failing in ("cuMemMap", "cuMemSetAccess")
    assert driver.called.count("cuMemAddressFree") == was_reserved


def test_a_device_without_memory_for_another_process_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: FullDriver("cuDevicePrimaryCtxRetain"))
    with pytest.raises(
        MachineError, match=r"cuda:3 has no memory left: .*; end what uses it, or judge on another"
    ) as kept:
        Device(3)
    assert is_about_full_device(str(kept.value))  # what a worker prints tells its referee


def test_a_full_device_is_not_taken_for_one_that_another_user_may_not_use(server: ForkServer) -> None:
    judge = Judge(PARAMS)
    with pytest.raises(MachineError, match=FULL_REMEDY):
        judge._walls(server, core=0)


def test_a_judge_that_finds_no_room_says_what_to_do_and_leaves_nothing_open() -> None:
    before = num_open()
    with pytest.raises(MachineError, match="judge on another device"):
        Lease(cast(Device, FullDevice()))
    assert num_open() == before
    for path in Path("/tmp").glob(f"cuda-l1-{FullDevice.uuid}.*"):
        path.unlink()


class CrowdedDevice:
    """A GPU of which one process has a fifth and more, and next to nothing is left."""

    uuid = f"crowded-{os.getpid()}"
    memory_bytes = 1 << 30, 80 << 30

    def allocate(self, num_bytes: int) -> tuple[int, int, int]:
        return 0, num_bytes, -1

    def fill(self, address: int, num_bytes: int, value: int) -> None:
        pass

    def free(self, address: int, num_bytes: int, fd: int) -> None:
        pass


def test_who_has_much_of_a_device_that_is_full_is_judged_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "used_bytes", lambda uuid, pid: 17 << 30)
    ours = Lease(cast(Device, CrowdedDevice()))
    try:
        with pytest.raises(WireError, match="took 17408 MiB of the device's memory") as kept, ours.turn(1, waits=True):
            pass
    finally:
        ours.close()
        for path in Path("/tmp").glob(f"cuda-l1-{CrowdedDevice.uuid}.*"):
            path.unlink()
    assert is_about_full_device(str(kept.value))  # beside others that may be its reference's need as well


def test_a_look_some_time_ago_excuses_nobody_when_the_device_is_found_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "used_bytes", lambda uuid, pid: {1: 60 << 30}.get(pid, 1 << 30))
    device = CrowdedDevice()
    device.memory_bytes = 70 << 30, 80 << 30
    ours = Lease(cast(Device, device))
    try:
        with ours.turn(1, waits=True):
            pass  # after it somebody looks, as now and then
        with ours.turn(1, waits=True):
            device.memory_bytes = 1 << 27, 80 << 30
        assert "took 61440 MiB" in ours.blame_for_memory(1)
        assert not ours.blame_for_memory(2)
    finally:
        ours.close()
        for path in Path("/tmp").glob(f"cuda-l1-{CrowdedDevice.uuid}.*"):
            path.unlink()


@pytest.mark.parametrize("blame", ["the process took it all, of which next to none was left", ""])
@pytest.mark.parametrize("error", [FullDeviceError, MemoryError])
def test_a_candidate_that_leaves_its_reference_no_memory_has_crashed(
    error: type[Exception], blame: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_it_full(*_: Any) -> None:
        raise error("a worker process did not start")

    monkeypatch.setattr(Pair, "_ask_reference", find_it_full)
    monkeypatch.setattr(WorkerProcess, "blame_for_memory", lambda worker: blame)
    with Judge(PARAMS) as judge:
        if not blame:
            with pytest.raises(FullDeviceError, match="did not start"):
                judge.judge(HONEST.problem, HONEST.candidate, seed=0)
            return
        verdict = judge.judge(HONEST.problem, HONEST.candidate, seed=0)
    assert (verdict.status, verdict.detail) == (Status.CRASHED, blame)


CUDNN = "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR"


@pytest.mark.parametrize("is_still_so", [False, True], ids=["right when alone", "wrong when alone too"])
@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (BadProblemError(f"the reference fails at times: {CUDNN}"), Status.BAD_PROBLEM),
        (RefusedError(Status.CRASHED, CUDNN), Status.CRASHED),
    ],
    ids=["the reference", "the candidate"],
)
def test_a_failure_that_may_be_for_want_of_memory_counts_only_of_who_is_alone(
    failure: Exception, status: Status, is_still_so: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares, examine = list[float](), Judge._examine_once

    def fails(judge: Judge, *given: Any) -> None:
        shares.append(given[-1])
        if is_still_so or len(shares) == 1:
            raise failure
        monkeypatch.setattr(judge, "_device", None)
        examine(judge, *given)

    with Judge(PARAMS) as judge:
        monkeypatch.setattr(Judge, "_examine_once", fails)
        monkeypatch.setattr(judge, "_device", FullDevice())
        monkeypatch.setattr(judge, "_alone_with_all_memory", judge._room.alone)
        verdict = judge.judge(HONEST.problem, HONEST.candidate, seed=0)
        monkeypatch.setattr(judge, "_device", None)
    assert verdict.status in ((status,) if is_still_so else RIGHT), verdict.detail
    assert len(shares) == 2
    assert shares[1] == ALONE_SHARE


@pytest.mark.parametrize(
    ("lacks", "is_told"), [("cupy", False), ("cupyx.scipy.sparse", True)], ids=["CuPy itself", "a part of it"]
)
def test_a_cupy_that_lacks_a_part_is_told_of(
    lacks: str, is_told: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Lacking(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise ModuleNotFoundError(f"No module named {lacks!r}", name=lacks)

    monkeypatch.setitem(sys.modules, "cupy", Lacking("cupy"))
    with caplog.at_level(logging.WARNING):
        assert not blocks.has_cupy.__wrapped__()
    assert ("come to the host" in caplog.text) == is_told
