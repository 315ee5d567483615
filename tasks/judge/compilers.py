"""The compilers that candidates ask for: by which words they are known, and loading them before workers start.

What a fork server has loaded its copies need not load: on a device that is 0.5 to 9 seconds a process.
"""

import contextlib
import fcntl
import gc
import importlib
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tasks.judge.walls import sandbox

GRAPHS, TRITON, NATIVE = "graphs", "triton", "native"
# Not torch.compiler and torch._C._dynamo: asking whether somebody compiles, as drop-ins do, compiles nothing.
_WORDS = {
    GRAPHS: re.compile(r"torch\.compile\b|(?<!_C\.)_dynamo|_inductor"),
    TRITON: re.compile("triton"),
    NATIVE: re.compile("cpp_extension"),
}
_MODULES = {
    NATIVE: ("torch.utils.cpp_extension",),
    TRITON: ("triton", "triton.language"),
    GRAPHS: (
        "triton",
        "torch._dynamo.backends.inductor",
        "torch._inductor.compile_fx",
        "torch._inductor.select_algorithm",
        "torch._inductor.cudagraph_trees",
        "torch._inductor.fx_passes.fuse_attention",
        "torch._inductor.codegen.cuda_combined_scheduling",
        "torch.export._trace",
    ),
}
_DRIVER_FILE = "/dev/nvidia-uvm"  # opened by cuInit, and not by what only lists devices


def mentioned(source: str) -> frozenset[str]:
    """The compilers that a candidate's text has words of."""
    return frozenset(name for name, words in _WORDS.items() if words.search(source))


def load_for_processor(cache: Path) -> None:
    """Load the compiler of graphs and compile once, so that workers inherit what it found out about this machine.

    The instruction set and the precompiled headers take 20 seconds; the headers stay in the cache folder, which workers
    read and nobody but us writes.
    """
    import torch

    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / "complete").exists():  # a header cut short by a kill would be taken for a whole one
            shutil.rmtree(cache / "files", ignore_errors=True)
        (cache / "files").mkdir(exist_ok=True)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.tempdir = str(cache / "files")
        with contextlib.suppress(Exception):  # without a C++ compiler candidates find out for themselves
            torch.compile(lambda x: torch.relu(x @ x) * 2 + 1)(torch.ones(64, 64))
            (cache / "complete").touch()
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()  # a worker's count of compiled frames decides its track
    _keep()


def load_for_device(names: Collection[str], scratch: Path) -> None:
    """Load each of some compilers, unless that takes up the device, which no copy of this process could use any more.

    A copy tries it first, and is all that is lost then.

    Args:
        scratch: where what Triton compiles for itself is kept, which nobody else may write to.

    Raises:
        RuntimeError: if it takes up the device although the copy's attempt did not.
    """
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="triton-", dir=scratch)
    for name in names:
        if _is_harmless(name):
            _load(name)
            if _has_taken_up_driver():
                raise RuntimeError(f"loading {name} has taken up the device, though not in the copy that tried it")
    _keep()


def use_own_files(scratch: str) -> None:
    """What the cache lacks goes to the worker's scratch folder."""
    codecache: Any = sys.modules.get("torch._inductor.codecache")
    if codecache is not None:
        codecache._HEADER_DIR = f"{scratch}/headers"
        codecache._HEADER_LOCK_DIR = f"{scratch}/headers/locks"


def _is_harmless(name: str) -> bool:
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            sandbox.die_with_parent(signal.SIGKILL)
            _load(name)
            os.write(writing, b"spoiled" if _has_taken_up_driver() else b"harmless")
        finally:
            os._exit(0)  # or a copy would go on as a second fork server
    os.close(writing)
    with open(reading, "rb") as answer:
        return answer.read() == b"harmless"


def _load(name: str) -> None:
    """Import what compiles. Who asks meanwhile whether there is a device hears yes, from us and not from the driver."""
    import torch

    asked, torch.cuda.is_available = torch.cuda.is_available, lambda: True
    try:
        for module in _MODULES[name]:
            with contextlib.suppress(Exception):  # candidates that need it find out for themselves
                importlib.import_module(module)
        if "triton" in sys.modules:
            with contextlib.suppress(Exception):  # as where there is no C compiler
                _ = sys.modules["triton"].runtime.driver.active
    finally:
        torch.cuda.is_available = asked


def _has_taken_up_driver() -> bool:
    links = []
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            links.append(os.readlink(f"/proc/self/fd/{fd}"))
    return _DRIVER_FILE in links


def _keep() -> None:
    """A copy's collections must not walk, and so copy, the pages of what is loaded."""
    gc.collect()
    gc.freeze()
