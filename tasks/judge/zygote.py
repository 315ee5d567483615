"""The fork server: a clean process with torch loaded, of which every worker is a copy made in milliseconds.

Started as a program of its own with a scrubbed environment, it never sees a candidate's text, a seed or a secret. Each
worker gets a supervisor, which is the only parent it has and the only one left to end what the worker started.
"""

import contextlib
import gc
import json
import mmap
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from tasks.judge import compilers, cuda, remote_memory
from tasks.judge.walls import cgroup, sandbox
from tasks.judge.wire import FRAME_BYTES
from tasks.judge.worker import Worker

PRIORITY = -10
QUEUES_VARIABLE = "CUDA_DEVICE_MAX_CONNECTIONS"  # which the driver reads when it makes a context; 8 where it is not set


def main() -> None:
    """Serve until the referee hangs up, which its death does too."""
    control = socket.socket(fileno=int(sys.argv[1]))
    sandbox.die_with_parent(0)
    walls = sandbox.leave_shared_spaces()
    _warm_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps supervisors
    facts = {"walls": walls, "torch": torch.__version__, "python": sys.version.split()[0], "threads": _num_threads()}
    control.send(json.dumps(facts).encode())
    while True:
        frame, fds, _, _ = socket.recv_fds(control, FRAME_BYTES, 8)
        if not frame:
            os._exit(0)  # supervisors are told by the kernel
        request = json.loads(frame)
        if request["op"] == "spawn" and os.fork() == 0:
            control.close()
            _supervise(request, *fds)
        if request["op"] == "load_compilers":
            _load_compilers(request)
            control.send(b"loaded")
        for fd in fds:
            os.close(fd)


def _warm_up() -> None:
    """Load what torch loads on first use, so that no candidate's first call pays for it."""
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    # Torch takes this once, and a program that says it for itself must not fail because we were first.
    torch.set_num_interop_threads = lambda num_threads: None  # type: ignore[assignment]
    torch.set_grad_enabled(False)
    x = torch.randn(1, 8, 16, 16)
    torch.nn.functional.layer_norm(torch.nn.Conv2d(8, 8, 3, padding=1)(x), (16,)).softmax(-1)
    torch.nn.functional.scaled_dot_product_attention(x, x, x)
    (x @ x).double().exp().sum().item()
    gc.collect()
    gc.freeze()  # a copy's collections must not walk, and so copy, the pages of the original


def _load_compilers(request: dict[str, Any]) -> None:
    if request["for_device"]:
        compilers.load_for_device(request["names"], Path(request["scratch"]))
    else:
        compilers.load_for_processor(Path(request["cache"]))


def _supervise(request: dict[str, Any], connection_fd: int, log_fd: int, life_fd: int, *arena_fds: int) -> NoReturn:
    """Start a worker, tell its process id, wait for its end and end whatever it leaves behind.

    The life pipe closes with this process, which is how the referee knows that nothing is left.
    """
    sandbox.die_with_parent(signal.SIGTERM)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    sandbox.adopt_orphans()
    limits = sandbox.Limits.from_json(request["limits"])
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {limits.core})
    with contextlib.suppress(OSError):  # only root may; fewer interruptions, steadier times
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    walls = sandbox.leave_spaces()
    worker = os.fork()
    if worker == 0:
        os.close(life_fd)
        _work(request, limits, walls, connection_fd, log_fd, *arena_fds)
    for fd in (connection_fd, log_fd, *arena_fds):
        os.close(fd)
    signal.signal(signal.SIGTERM, lambda *_: _end(worker))
    os.write(life_fd, f"{os.getpid()} {worker}".encode())
    with contextlib.suppress(ChildProcessError):
        os.waitpid(worker, 0)
    _sweep()
    os._exit(0)


def _work(
    request: dict[str, Any], limits: sandbox.Limits, walls: list[str], connection_fd: int, log_fd: int, *arena_fds: int
) -> NoReturn:
    sandbox.die_with_parent(signal.SIGKILL)
    os.setsid()
    with contextlib.suppress(OSError):  # where each session has a share of the cores, a priority counts within it only
        Path("/proc/self/autogroup").write_text(str(PRIORITY))
    text = mmap.mmap(arena_fds[0], 0)
    memory_fd = os.dup(arena_fds[-1])
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log_fd, 1)
    os.dup2(log_fd, 2)
    os.dup2(connection_fd, 3)
    os.dup2(memory_fd, 4)
    os.closerange(5, 4_096)
    connection = socket.socket(fileno=3)
    if cgroup.join(request["entrances"]):
        walls.append("cgroup")
    walls += sandbox.confine(limits)
    sandbox.die_with_parent(signal.SIGKILL)  # becoming another user has undone it
    compilers.use_own_files(limits.scratch)
    # A fork leaves torch's thread pool to be made anew by whoever asks first, and two that ask at once crash.
    torch.set_num_threads(1)
    if request["has_one_queue"]:
        os.environ[QUEUES_VARIABLE] = "1"
    memory = _memory(4, request, text if len(arena_fds) == 1 else None)
    probe = np.frombuffer(remote_memory.PROBE, dtype=np.uint8)
    start = {"walls": walls, "reads_installation": sandbox.can_read_installation(), "probe": probe.ctypes.data}
    connection.send(json.dumps(start).encode())
    Worker(connection, text, memory).serve()
    os._exit(0)


def _memory(fd: int, request: dict[str, Any], on_host: mmap.mmap | None) -> torch.Tensor:
    """The arena as bytes on the device to judge on."""
    if on_host is None:
        return cuda.attached_memory(fd, request["arena_bytes"], memory_share=request["memory_share"])
    os.close(fd)
    return torch.frombuffer(on_host, dtype=torch.uint8)


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _sweep() -> None:
    """Kill and reap children until there are none; orphans of children that die become children too."""
    while True:
        with open(f"/proc/self/task/{os.getpid()}/children") as children:
            for pid in children.read().split():
                _end(int(pid))
        try:
            os.wait()
        except ChildProcessError:
            return


def _num_threads() -> int:
    return len(os.listdir("/proc/self/task"))


if __name__ == "__main__":
    main()
