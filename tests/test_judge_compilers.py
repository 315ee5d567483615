"""Compilers are loaded before workers start: which a candidate asks for, and that no device is taken up by it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.judge import compilers
from tasks.judge.fork_server import ForkServer
from tasks.judge.screen import screen
from tasks.judge.slots import Slots
from tasks.judge.walls.scratch import ScratchFolder

CANDIDATE = "import torch\n{}\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
LOADING = """
import sys, torch
from pathlib import Path
from tasks.judge import compilers

def refuse(*arguments):
    raise RuntimeError("asked for the device")

for name in ("_lazy_init", "device_count", "get_device_properties", "get_device_capability", "current_device"):
    setattr(torch.cuda, name, refuse)
asked = torch.cuda.is_available
print(compilers.load_for_device(compilers.COMPILERS, Path(sys.argv[1])), torch.cuda.is_available is asked)
print("torch._inductor.compile_fx" in sys.modules, "torch.utils.cpp_extension" in sys.modules)
"""


@pytest.fixture
def server() -> Iterator[ForkServer]:
    scratch = ScratchFolder.make()
    server = ForkServer(scratch.path)
    yield server
    server.close()
    scratch.remove()


def spawned(server: ForkServer) -> int:
    worker = server.spawn(arena_bytes=1 << 20, cores=[0], uid=None, memory_bytes=1 << 30, cpu_s=60)
    worker.end()
    return worker.pid


@pytest.mark.parametrize(
    ("line", "found"),
    [
        pytest.param("f = torch.compile(torch.relu)", {compilers.GRAPHS}, id="a graph"),
        pytest.param("import triton.language as tl", {compilers.TRITON}, id="Triton"),
        pytest.param("from torch.utils.cpp_extension import load_inline", {compilers.NATIVE}, id="C++"),
        pytest.param("", set(), id="none"),
    ],
)
def test_the_screen_tells_which_compilers_a_candidate_asks_for(line: str, found: set[str]) -> None:
    assert screen(CANDIDATE.format(line)).compilers == found


@pytest.mark.slow
def test_loading_for_a_device_asks_nobody_for_the_device(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", LOADING, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert run.stdout.split() == ["True"] * 4, run.stderr


def test_a_process_that_holds_the_driver_is_found_unusable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = tmp_path / "nvidia-uvm"
    monkeypatch.setattr(compilers, "_DRIVER_FILE", str(driver))
    assert compilers.load_for_device([], tmp_path)
    with driver.open("w"):
        assert not compilers.load_for_device([], tmp_path)


@pytest.mark.slow
def test_a_fork_server_spoiled_by_its_compilers_is_replaced_by_one_without(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoiled = server._process
    monkeypatch.setattr(ForkServer, "_is_usable", lambda self: not self._control.recv(1 << 16))
    server.load_compilers([compilers.GRAPHS])
    assert spoiled.wait(10) == 0
    assert server.is_alive
    assert spawned(server) > 0
    monkeypatch.setattr(ForkServer, "_send", None)  # nothing is asked of it any more
    server.load_compilers(compilers.COMPILERS)


def test_slots_on_a_device_have_cores_for_two_compilers() -> None:
    slots = Slots()
    first = 1_000_000 + os.getpid() * 10
    slots.fill(2, cores=range(first, first + 4), cores_each=2, uids=())
    try:
        assert [slots._free.get().cores for _ in range(2)] == [(first, first + 1), (first + 2, first + 3)]
    finally:
        slots.close()
