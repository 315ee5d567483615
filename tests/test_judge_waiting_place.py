"""A worker waits for its next question in the judge's loop; one that waits anywhere else is found out."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tasks.judge.waiting_place import STACK_BYTES, Place, comes_to, first_place, is_shared
from tasks.judge.wire import DeadlineError

WAIT_S = 20.0
LOOP = """
import os, socket, sys, threading
connection = socket.socket(fileno=os.dup2(int(sys.argv[1]), 3))
frame = bytearray(4096)
class Model:
    def __call__(self):
        connection.recv_into(frame)
        connection.send(b"answered from within")
        connection.recv_into(frame)
def serve():
    receive = connection.recv_into
    while receive(frame):
        if frame[:1] == b"t":
            threading.Thread(target=threading.Event().wait, daemon=True).start()
        elif frame[:1] == b"m":
            connection.send(b"asked")
            Model()()
        elif frame[:1] == b"s":
            real, (dummy, keep) = os.dup(3), socket.socketpair()
            os.dup2(dummy.fileno(), 3)
            threading.Thread(target=lambda: os.read(real, 1), daemon=True).start()
            os.write(real, b"asked")
        elif frame[:1] == b"o":
            connection.send(b"asked")
            os.read(3, 1)
        elif frame[:1] == b"b":
            connection.send(b"asked")
            while True:
                pass
        if frame[:1] != b"s":
            connection.send(b"answered")
serve()
"""
needs_kernel = pytest.mark.skipif(not os.path.exists("/proc/self/syscall"), reason="this kernel does not tell")


@contextlib.contextmanager
def looping() -> Iterator[tuple[int, socket.socket]]:
    """A process that serves questions as a worker does: its id, and the other end of its connection."""
    ours, theirs = socket.socketpair()
    ours.settimeout(WAIT_S)
    with ours, subprocess.Popen([sys.executable, "-c", LOOP, str(theirs.fileno())], pass_fds=[theirs.fileno()]) as it:
        theirs.close()
        try:
            yield it.pid, ours
        finally:
            it.kill()


def asked(connection: socket.socket, question: bytes) -> bytes:
    connection.send(question)
    return connection.recv(64)


def place_of(pid: int) -> Place:
    deadline = time.monotonic() + WAIT_S
    while (found := first_place(pid)) is None:
        assert time.monotonic() < deadline, "it waits nowhere"
    return found


@needs_kernel
@pytest.mark.parametrize("question", [b"plain", b"thread"])
def test_a_loop_that_has_answered_waits_where_it_did_before(question: bytes) -> None:
    with looping() as (pid, connection):
        place = place_of(pid)
        for _ in range(100):  # as often as makes the interpreter specialise what it runs
            assert asked(connection, question) == b"answered"
        assert comes_to(pid, place, within_s=WAIT_S)


@needs_kernel
@pytest.mark.parametrize("question", [b"model", b"other call"])
def test_a_loop_within_a_call_of_the_model_or_another_system_call_is_elsewhere(question: bytes) -> None:
    with looping() as (pid, connection):
        place = place_of(pid)
        assert asked(connection, question) == b"asked"
        elsewhere = place_of(pid)
        assert not place.is_like(elsewhere)
        assert not comes_to(pid, place, within_s=0.05)
        if question == b"model":
            assert place.stack - elsewhere.stack > 2 * STACK_BYTES


@contextlib.contextmanager
def next_to_nothing_of_a_core(pid: int) -> Iterator[None]:
    """The process has a core only where another that never rests leaves it something."""
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(pid, {core})
    os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
    with subprocess.Popen(
        [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"]
    ) as it:
        try:
            yield
        finally:
            it.kill()


@needs_kernel
def test_who_gets_no_core_is_waited_for_and_not_elsewhere() -> None:
    with looping() as (pid, connection):
        place = place_of(pid)
        with next_to_nothing_of_a_core(pid):
            for _ in range(50):
                assert asked(connection, b"plain") == b"answered"
                assert comes_to(pid, place, within_s=0.005)


@needs_kernel
def test_who_runs_on_and_on_is_elsewhere() -> None:
    with looping() as (pid, connection):
        place = place_of(pid)
        assert asked(connection, b"busy") == b"asked"
        assert not comes_to(pid, place, within_s=0.1)


@needs_kernel
def test_what_cannot_be_known_for_too_long_is_a_question_of_time() -> None:
    with looping() as (pid, connection):
        place = place_of(pid)
        assert asked(connection, b"busy") == b"asked"
        with pytest.raises(DeadlineError):
            comes_to(pid, place, within_s=WAIT_S, patience_s=0.1)


@needs_kernel
def test_a_connection_that_another_thread_has_taken_is_found_out() -> None:
    with looping() as (pid, connection):
        place = place_of(pid)
        assert not is_shared(pid, place)
        assert asked(connection, b"swap") == b"asked"
        assert not comes_to(pid, place, within_s=0.1)
        deadline = time.monotonic() + WAIT_S
        while not is_shared(pid, place):
            assert time.monotonic() < deadline, "nobody else waits"


def test_of_a_process_that_has_ended_or_asks_elsewhere_no_place_is_known() -> None:
    with subprocess.Popen(["sleep", str(WAIT_S)]) as sleeping:
        assert Place.of(sleeping.pid) is None
        sleeping.kill()
        sleeping.wait()
        assert Place.of(sleeping.pid) is None
