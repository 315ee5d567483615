"""Compilers are loaded before workers start: which a candidate asks for, and that no device is taken up by it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from flows.benches.specimens import read_collection
from tasks.errors import WorkerError
from tasks.judge import compilers
from tasks.judge.fork_server import ForkServer
from tasks.judge.judge import Judge
from tasks.judge.screen import screen
from tasks.judge.verdict import Status
from tasks.judge.walls.scratch import ScratchFolder
from tests.judge_builders import KERNELS, PARAMS

CANDIDATE = "import torch\n{}\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
TRITON = {
    "__init__.py": "import torch\nassert torch.cuda.is_available()\nfrom triton import language, runtime\n",
    "language.py": "",
    "runtime.py": """
import os

class Config:
    @property
    def active(self):
        with open(os.environ["TRITON_CACHE_DIR"] + "/loaded", "a") as file:
            file.write("x")
        {also}

driver = Config()
""",
}
LOADING = """
import sys, torch
from pathlib import Path
from tasks.judge import compilers

questions = []
for name in ("_lazy_init", "device_count", "get_device_properties", "get_device_capability", "current_device"):
    setattr(torch.cuda, name, lambda *arguments, name=name: questions.append(name))
asked = torch.cuda.is_available
compilers._DRIVER_FILE = sys.argv[2]
compilers.load_for_device(sys.argv[3:], Path(sys.argv[1]))
print(torch.cuda.is_available is asked, questions == [])
print("torch._inductor.compile_fx" in sys.modules, "torch.utils.cpp_extension" in sys.modules, "triton" in sys.modules)
"""


@pytest.fixture
def server() -> Iterator[ForkServer]:
    scratch = ScratchFolder.make()
    server = ForkServer(scratch.path)
    yield server
    server.close()
    scratch.remove()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        pytest.param("f = torch.compile(torch.relu)", {compilers.GRAPHS}, id="a graph"),
        pytest.param("from torch import _dynamo", {compilers.GRAPHS}, id="a graph, by its compiler's parts"),
        pytest.param("f = torch.compiler.is_compiling()", set(), id="none, who asks whether somebody compiles"),
        pytest.param("guards = torch._C._dynamo.guards", set(), id="none, who compares as compiled code does"),
        pytest.param("import triton.language as tl", {compilers.TRITON}, id="Triton"),
        pytest.param("from torch.utils.cpp_extension import load_inline", {compilers.NATIVE}, id="C++"),
        pytest.param("", set(), id="none"),
    ],
)
def test_the_screen_tells_which_compilers_a_candidate_asks_for(line: str, found: set[str]) -> None:
    assert screen(CANDIDATE.format(line)).compilers == found


def loaded(folder: Path, *names: str, also: str = "") -> tuple[list[str], list[str]]:
    """What a process says that has loaded compilers, and what a Triton of ours wrote to its cache."""
    (folder / "triton").mkdir(exist_ok=True)
    for name, text in TRITON.items() if also else ():
        (folder / "triton" / name).write_text(text.replace("{also}", also))
    (scratch := folder / "scratch").mkdir()
    run = subprocess.run(
        [sys.executable, "-c", LOADING, str(scratch), str(folder / "driver"), *names],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *([str(folder)] if also else [])])},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split(), [path.read_text() for path in scratch.glob("triton-*/loaded")]


@pytest.mark.slow
def test_loading_for_a_device_asks_nobody_for_the_device(tmp_path: Path) -> None:
    said, _ = loaded(tmp_path, compilers.GRAPHS, compilers.NATIVE)
    assert said[:4] == ["True"] * 4


def test_what_triton_compiles_for_itself_stays_in_a_folder_of_the_judges(tmp_path: Path) -> None:
    said, written = loaded(tmp_path, compilers.TRITON, also="return self")
    assert said == ["True", "True", "False", "False", "True"]
    assert written == ["xx"]  # by the copy that tried, and by the process itself


def test_what_would_take_up_the_driver_is_tried_in_a_copy_and_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "driver").touch()
    said, written = loaded(tmp_path, compilers.TRITON, also=f"self.file = open({str(tmp_path / 'driver')!r})")
    assert said == ["True", "True", "False", "False", "False"]
    assert written == ["x"]


def test_what_cannot_be_loaded_hinders_nothing_else(tmp_path: Path) -> None:
    said, _ = loaded(tmp_path, compilers.TRITON, compilers.NATIVE, also="raise OSError")
    assert said == ["True", "True", "False", "True", "True"]


def test_a_fork_server_that_dies_of_its_compilers_is_the_judges_failure(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = ForkServer._send

    def send_and_die(server: ForkServer, *request: object) -> None:
        server._process.send_signal(signal.SIGSTOP)
        send(server, *request)  # type: ignore[arg-type]
        server._process.kill()

    monkeypatch.setattr(ForkServer, "_send", send_and_die)
    with pytest.raises(WorkerError, match="failed to load compilers"):
        server.load_compilers([compilers.GRAPHS])
    assert not server.is_alive


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_workers_use_the_device_after_all_compilers_are_loaded() -> None:
    specimens = {each.name: each for each in read_collection(KERNELS / "cuda")}
    params = replace(PARAMS, device="cuda:0", timeout_s=180.0, memory_bytes=8 << 30)  # type: ignore[type-var]
    with Judge(params) as judge:
        for name in ("triton_softmax", "compiled", "same"):
            specimen = specimens[f"honest/{name}"]
            verdict = judge.judge(specimen.problem, specimen.candidate, seed=0)
            assert verdict.status is Status.CORRECT, verdict.detail
        assert judge._server is not None
        assert judge._server._loaded == {compilers.GRAPHS, compilers.TRITON}
