"""Ends this process when the command that started it is gone, or when somebody asks it to.

DVC does not end a stage's process when it is killed itself, by SIGTERM neither; the orphan would go on writing while
the next `dvc repro` resumes the same work.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.judge.walls.system import PR_SET_PDEATHSIG, prctl

POLL_S = 0.5
GRACE_S = 120.0
"""From SIGTERM, at which a training ends its step and writes a checkpoint, to SIGKILL."""
LAUNCHERS = ("dvc", "make", "sh", "dash", "bash")


def end_with_ancestors() -> None:
    """Watch the dvc and make that launched this process, if any, and end this process when one dies.

    It is asked to, and killed if it takes too long.
    """
    watched = [(pid, _start_time(pid)) for pid in _launchers(os.getpid())]
    if watched:
        threading.Thread(target=_watch, args=(watched,), name="ancestors", daemon=True).start()


@contextmanager
def ended_by_sigterm(message: str) -> Iterator[None]:
    """Have SIGTERM end this process at once, but with a message, where nobody else listens for it.

    Nothing is unwound: what is kept is kept at every moment, and what waits, such as for a judge, would hold us up.
    """
    ours = os.getpid()

    def leave(number: int, _frame: object) -> None:
        if os.getpid() == ours:  # and not a fork of it
            os.write(2, f"{message}\n".encode())
        os._exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def end_with_parent() -> None:
    """For a child that runs another program: the kernel kills it when the thread that started it is gone."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _launchers(pid: int) -> list[int]:
    """The chain of shells, dvc and make above a process; empty unless there is a dvc in it."""
    chain: list[tuple[int, str]] = []
    while (pid := _parent(pid)) > 1 and (name := _program(pid)) in LAUNCHERS:
        chain.append((pid, name))
    # A shell beyond the topmost dvc or make is the user's: it may end while its background job goes on.
    while chain and chain[-1][1] not in ("dvc", "make"):
        chain.pop()
    return [pid for pid, _ in chain] if any(name == "dvc" for _, name in chain) else []


def _watch(watched: list[tuple[int, int]]) -> None:
    while all(_start_time(pid) == started for pid, started in watched):
        time.sleep(POLL_S)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)  # the working folder is made for this


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def _start_time(pid: int) -> int:
    """Clock ticks since boot, which tells a reused pid apart; 0 when the process is gone or a zombie."""
    fields = _stat(pid)
    return int(fields[19]) if fields and fields[0] != "Z" else 0


def _program(pid: int) -> str:
    """What a process runs: "dvc" for ``python -m dvc`` and for the dvc script, else the executable's name."""
    try:
        words = [
            word for word in Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0") if word
        ]
    except OSError:
        return ""
    if not words:
        return ""
    program = Path(words[0]).name
    if program.startswith("python"):
        return "dvc" if words[1:3] == ["-m", "dvc"] or (len(words) > 1 and Path(words[1]).name == "dvc") else program
    return program
