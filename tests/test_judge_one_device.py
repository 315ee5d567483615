"""A program reaches the device that it is judged on and no other; a study has one queue of work there."""

import glob
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from tasks.judge import nvml
from tasks.judge.device_files import device_files
from tasks.judge.fork_server import ForkServer
from tasks.judge.judge import Judge
from tasks.judge.processes import WorkerProcess
from tasks.judge.verdict import Status
from tests.judge_builders import KERNELS, PARAMS, RIGHT, kernel, with_source

HONEST = kernel(KERNELS / "honest" / "same.py")
LOOKS_FOR_OTHERS = """\
import glob, os, subprocess, sys

import torch

COUNT = '''
import ctypes
driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
driver.cuInit(0)
driver.cuDeviceGetCount(ctypes.byref(count))
print(count.value)
'''


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        free = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        said = subprocess.run([sys.executable, "-c", COUNT], env=free, capture_output=True, text=True)
        raise RuntimeError(f"{said.stdout.strip()} counted, {len(glob.glob('/dev/nvidia[0-9]*'))} seen")

    def forward(self, x):
        return torch.softmax(x, dim=-1)
"""
TELLS_ITS_QUEUES = "import os\nassert os.environ.get('CUDA_DEVICE_MAX_CONNECTIONS') == {}\nclass Model: pass\n"
FILES = ["/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"]


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, ["nvidia-uvm", "nvidia1", "nvidiactl"]),
        (7, ["nvidia-uvm", "nvidia0", "nvidia1", "nvidiactl"]),
        (None, ["nvidia-uvm", "nvidia0", "nvidia1", "nvidiactl"]),
    ],
    ids=["its own", "no file of that number", "nobody knows"],
)
def test_of_all_devices_files_its_own_is_taken_where_it_is_known(
    monkeypatch: pytest.MonkeyPatch, number: int | None, expected: list[str]
) -> None:
    def tell(function: str, device_uuid: str, place: Any) -> bool:
        assert (function, device_uuid) == ("nvmlDeviceGetMinorNumber", "GPU-1")
        place._obj.value = number or 0
        return number is not None

    monkeypatch.setattr(nvml, "ask", tell)
    monkeypatch.setattr(glob, "glob", lambda pattern: FILES)
    assert device_files("GPU-1") == expected


def test_without_a_management_library_nothing_is_known() -> None:
    assert not nvml.ask("nvmlNoSuchFunction", "GPU-00000000-0000-0000-0000-000000000000")


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(PARAMS) as judge:
        yield judge


def test_a_study_gets_one_queue_and_both_programs_of_a_pair_the_usual_ones(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_one = []
    spawn = ForkServer.spawn

    def spawn_and_note(server: ForkServer, *, has_one_queue: bool = False, **arguments: Any) -> WorkerProcess:
        have_one.append(has_one_queue)
        return spawn(server, has_one_queue=has_one_queue, **arguments)

    monkeypatch.setattr(ForkServer, "spawn", spawn_and_note)
    assert judge.judge(HONEST.problem, HONEST.candidate, seed=0).status in RIGHT
    assert have_one == [True, False, False]


@pytest.mark.parametrize(("has_one_queue", "queues"), [(False, None), (True, "1")])
def test_a_worker_has_one_queue_only_where_that_is_asked_for(
    judge: Judge, has_one_queue: bool, queues: str | None
) -> None:
    text = TELLS_ITS_QUEUES.format(repr(queues)).encode()
    limits = {"core": 0, "uid": None, "memory_bytes": 1 << 29, "cpu_s": 60}
    assert judge._server is not None
    worker = judge._server.spawn(arena_bytes=1 << 20, has_one_queue=has_one_queue, **limits)
    try:
        worker.arena.write_text(text)
        asked = {"num_bytes": len(text), "filename": "x.py", "class_name": "Model", "precision": "fp32"}
        worker.ask("load", time.monotonic() + 20.0, **asked)
    finally:
        worker.end()


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
@pytest.mark.parametrize("index", [0, 1])
def test_a_candidate_finds_no_device_but_the_one_that_it_is_judged_on(index: int) -> None:
    curious = with_source(HONEST, LOOKS_FOR_OTHERS)
    params = replace(PARAMS, device=f"cuda:{index}", timeout_s=60.0, memory_bytes=8 << 30)  # type: ignore[type-var]
    with Judge(params) as judge:
        if "mount" not in judge.environment["walls"]:
            pytest.skip("this machine allows no mount wall")
        assert "device" in judge.environment["walls"].split(",")
        verdict = judge.judge(curious.problem, curious.candidate, seed=0)
        assert judge.judge(HONEST.problem, HONEST.candidate, seed=0).status in RIGHT
    assert verdict.status is Status.CRASHED
    assert "1 counted, 1 seen" in verdict.detail
