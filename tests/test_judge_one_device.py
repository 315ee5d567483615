"""A program reaches the device that it is judged on and no other; an untimed one takes less of the driver's time."""

import time
from dataclasses import replace
from typing import Any

import pytest
import torch

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


def test_a_study_is_not_timed_and_both_programs_of_a_pair_are(monkeypatch: pytest.MonkeyPatch) -> None:
    are_timed = []
    spawn = ForkServer.spawn

    def spawn_and_note(server: ForkServer, *, is_timed: bool = True, **arguments: Any) -> WorkerProcess:
        are_timed.append(is_timed)
        return spawn(server, is_timed=is_timed, **arguments)

    with Judge(PARAMS) as judge:
        monkeypatch.setattr(ForkServer, "spawn", spawn_and_note)
        assert judge.judge(HONEST.problem, HONEST.candidate, seed=0).status in RIGHT
    assert are_timed == [False, True, True]


@pytest.mark.parametrize(("is_timed", "queues"), [(True, None), (False, "1")])
def test_only_who_is_not_timed_gets_one_queue(is_timed: bool, queues: str | None) -> None:
    text = TELLS_ITS_QUEUES.format(repr(queues)).encode()
    limits = {"core": 0, "uid": None, "memory_bytes": 1 << 29, "cpu_s": 60}
    with Judge(PARAMS) as judge:
        assert judge._server is not None
        worker = judge._server.spawn(arena_bytes=1 << 20, is_timed=is_timed, **limits)
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
        verdict = judge.judge(curious.problem, curious.candidate, seed=0)
        assert judge.judge(HONEST.problem, HONEST.candidate, seed=0).status in RIGHT
    assert verdict.status is Status.CRASHED
    assert "1 counted, 1 seen" in verdict.detail
