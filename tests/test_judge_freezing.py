"""Who is not asked stands still: nothing of a worker runs while others are timed, whatever it was doing."""

import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tasks.judge import processes
from tasks.judge.fork_server import ForkServer
from tasks.judge.processes import Taken, WorkerProcess, in_json, sleeps_alone
from tasks.judge.wire import WireError
from tasks.judge.zygote import PRIORITY

LOOKS, LOOK_S, WAIT_S = 5, 0.01, 20.0
LONG_LOOK_S = 0.1
THREADS = """
import threading, time
for _ in range(8):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
"""
CHILDREN = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        while True:
            time.sleep(600)
"""
BUSY_CHILD = """
import os
if os.fork() == 0:
    while True:
        pass
"""
LONG_CALL = """
import ctypes, os, threading
libc, size, times = ctypes.CDLL(None), 4 << 20, 512
class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
one, two, begun = ctypes.create_string_buffer(size), ctypes.create_string_buffer(size), threading.Event()
to = (Piece * times)(*[(ctypes.addressof(one), size)] * times)
of = (Piece * times)(*[(ctypes.addressof(two), size)] * times)
def copy():
    begun.set()
    while True:
        libc.process_vm_readv(os.getpid(), to, times, of, times, 0)
threading.Thread(target=copy, daemon=True).start()
begun.wait()
"""
"""Each copies 2 GiB, which takes a tenth of a second and more."""
WAITS_FOR_A_CHILD = """
import ctypes, os, signal, threading, time
libc, stack, CLONE_VM, CLONE_VFORK = ctypes.CDLL(None), ctypes.create_string_buffer(1 << 20), 0x100, 0x4000
libc.clone.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
top = (ctypes.addressof(stack) + len(stack)) & -4096
start = threading.Thread(
    target=libc.clone,
    args=(ctypes.cast(libc.sleep, ctypes.c_void_p), top, CLONE_VM | CLONE_VFORK | signal.SIGCHLD, 600),
    daemon=True,
)
start.start()
while not open(f"/proc/self/task/{start.native_id}/children").read():
    time.sleep(0.01)
"""
WAKES_ITS_PARENT = """
import os, signal
parent = os.getpid()
if os.fork() == 0:
    while True:
        os.kill(parent, signal.SIGCONT)
"""


@pytest.fixture
def worker(fork_server: ForkServer) -> Iterator[WorkerProcess]:
    core = min(os.sched_getaffinity(0))
    worker = fork_server.spawn(arena_bytes=1 << 20, core=core, uid=None, memory_bytes=2 << 30, cpu_s=60)
    yield worker
    worker.end()


def run(worker: WorkerProcess, code: str) -> Taken:
    """What it takes to run code in the worker, as the top level of a program that defines a model."""
    text = np.frombuffer((code + "\nclass Model: pass\n").encode(), dtype=np.uint8)
    worker.arena.write(0, text)
    fields = {"filename": "program.py", "class_name": "Model", "precision": "fp32"}
    question = in_json("load", num_bytes=text.size, **fields)
    return worker.time_ask("load", time.monotonic() + WAIT_S, question)[1]


def look_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = processes.stopped

    def stopped(supervisor_pid: int) -> dict[int, bool]:
        time.sleep(LONG_LOOK_S)
        return looked(supervisor_pid)

    monkeypatch.setattr(processes, "stopped", stopped)


def states_and_times(worker: WorkerProcess) -> list[tuple[str, str]]:
    """Of each thread of the worker and of what it started: its state, and what it has had of a core."""
    found = []
    for pid in processes.descendants(worker._supervisor_pid):
        for thread in sorted(Path(f"/proc/{pid}/task").iterdir()):
            state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
            found.append((state, (thread / "schedstat").read_text().split()[0]))
    return found


@pytest.mark.parametrize(
    ("code", "num_threads"),
    [
        pytest.param("", 1, id="alone"),
        pytest.param(THREADS, 9, id="threads that sleep"),
        pytest.param(CHILDREN, 4, id="children that sleep"),
        pytest.param(THREADS + CHILDREN, 12, id="threads and children"),
        pytest.param(BUSY_CHILD, 2, id="a child at work"),
        pytest.param(LONG_CALL, 2, id="a thread in a long system call"),
        pytest.param(WAKES_ITS_PARENT, 2, id="a child that wakes it"),
    ],
)
def test_whoever_has_answered_has_stopped_with_all_it_started(
    worker: WorkerProcess, code: str, num_threads: int
) -> None:
    run(worker, code)
    for _ in range(3):
        run(worker, "")
        deadline = time.monotonic() + WAIT_S
        while num_threads == 1 and states_and_times(worker)[0][0] != "T":  # it only has to be given a core
            assert time.monotonic() < deadline
        first = states_and_times(worker)
        assert [state for state, _ in first] == ["T"] * num_threads
        for _ in range(LOOKS):
            time.sleep(LOOK_S)
            assert states_and_times(worker) == first


def test_a_system_call_that_goes_on_is_the_workers_own_time(worker: WorkerProcess) -> None:
    taken = run(worker, LONG_CALL)
    assert taken.outer_ms > taken.inner_ms + 20.0


def test_what_a_child_works_while_it_is_looked_for_is_the_workers_own_time(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long looking takes: a worker could answer at once, and have a child do the work meanwhile."""
    run(worker, BUSY_CHILD)
    look_for_long(monkeypatch)
    taken = run(worker, "")
    assert taken.outer_ms > taken.inner_ms + 500 * LONG_LOOK_S


def test_a_child_that_is_idle_costs_nothing_however_long_it_is_looked_for(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(worker, CHILDREN)
    look_for_long(monkeypatch)
    taken = run(worker, "")
    assert taken.outer_ms < taken.inner_ms + 500 * LONG_LOOK_S


def test_what_cannot_be_stopped_is_said(worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "STOP_S", 0.02)
    with pytest.raises(WireError, match="did not stop within"):
        run(worker, LONG_CALL)


@pytest.mark.skipif(platform.machine() not in processes.STARTING, reason="the numbers of its calls are not known")
@pytest.mark.skipif(not os.path.exists("/proc/self/syscall"), reason="this kernel does not tell")
def test_a_thread_that_waits_for_a_child_to_run_its_program_is_not_waited_for(worker: WorkerProcess) -> None:
    run(worker, WAITS_FOR_A_CHILD)
    assert sorted(state for state, _ in states_and_times(worker)) == ["D", "T", "T"]


@pytest.mark.parametrize(("code", "expected"), [("", True), (THREADS, False), (CHILDREN, False)])
def test_only_a_single_thread_that_waits_need_not_be_waited_for(
    worker: WorkerProcess, code: str, expected: bool
) -> None:
    run(worker, code)
    worker.thaw()
    deadline = time.monotonic() + (WAIT_S if expected else 0.2)
    while not (found := sleeps_alone(worker.pid, worker._supervisor_pid)) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    assert found is expected


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may raise a priority")
@pytest.mark.skipif(not os.path.exists("/proc/self/autogroup"), reason="this kernel has no groups of sessions")
def test_a_worker_has_its_priority_among_all_sessions_too(worker: WorkerProcess) -> None:
    assert os.getpriority(os.PRIO_PROCESS, worker.pid) == PRIORITY
    assert Path(f"/proc/{worker.pid}/autogroup").read_text().split()[-1] == str(PRIORITY)
