"""Where a stopped worker waits for its next question: in the judge's loop, or in one of its program's own.

The loop runs in the candidate's process, and what it costs is taken off every call, so that whoever answers from a
shorter one is paid for that. But the kernel says of a process in which system call it waits, into which buffer, and
where its stack is; and a loop that is entered from within a call of the model has a deeper stack. Another thread could
have the connection meanwhile, and the first wait for something else under its number: so both are looked at.
"""

import os
import time
from dataclasses import dataclass
from typing import Self

from tasks.judge.wire import DeadlineError

SETTLE_S, LOOK_S, LONGEST_LOOK_S = 1.0, 0.001, 0.05
"""Ever rarer looks: whoever looks takes the core from the one who is looked at. Every millisecond, beside work on all
cores, that one was seen to wait for a core for half a minute, and at every twentieth of a second not at all."""
PATIENCE_S = 60.0
"""For whoever gets no core."""
CONNECTION = 3
"""The descriptor on which workers are asked."""
READING = {"x86_64": (0, 19, 45, 47), "aarch64": (63, 65, 207, 212)}
"""The numbers of read, readv, recvfrom and recvmsg."""
STACK_BYTES = 256
"""The C library enters a call 40 bytes deeper once there are threads; a call of the model takes 736 and more (by Python
3.11 to 3.13 on x86-64)."""


@dataclass(frozen=True, slots=True)
class Place:
    """A system call that waits, as /proc/PID/syscall tells it."""

    number: int
    arguments: tuple[int, ...]
    """The descriptor, the buffer and its size."""
    stack: int
    """The stack pointer's value."""
    connection: str
    """What the descriptor stands for, as the kernel names it."""

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Where a process waits for a question; None if it runs, waits for something else, or we may not know."""
        try:
            words = _waited_for(f"/proc/{pid}/syscall")
            connection = os.readlink(f"/proc/{pid}/fd/{CONNECTION}")
        except OSError:
            return None
        if not words or int(words[1], 16) != CONNECTION:
            return None
        return cls(int(words[0]), tuple(int(word, 16) for word in words[1:4]), int(words[7], 16), connection)

    def is_like(self, other: "Place | None") -> bool:
        """Whether these are calls of the same loop."""
        return (
            other is not None
            and (self.number, self.arguments, self.connection) == (other.number, other.arguments, other.connection)
            and abs(self.stack - other.stack) <= STACK_BYTES
        )


def first_place(pid: int) -> Place | None:
    """Where a process that runs will soon wait for its first question; None if that cannot be known."""
    if not os.access(f"/proc/{pid}/syscall", os.R_OK):
        return None
    deadline, pause_s = time.monotonic() + SETTLE_S, LOOK_S
    while time.monotonic() < deadline:
        if (found := Place.of(pid)) and found == Place.of(pid):
            return found
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_LOOK_S)
    return None


def comes_to(pid: int, expected: Place, *, within_s: float, patience_s: float = PATIENCE_S) -> bool:
    """Whether a process that runs soon waits at the expected place.

    Args:
        within_s: of time in which it runs or waits for something. Who could run and gets no core, as others have them
            all, cannot come anywhere meanwhile.

    Raises:
        DeadlineError: if that is still not known after patience_s.
    """
    looked_at = began = time.monotonic()
    had_s, pause_s, (_, ran_s) = 0.0, LOOK_S, _runs(pid)
    while not expected.is_like(Place.of(pid)):
        if had_s > within_s:
            return False
        if looked_at - began > patience_s:
            raise DeadlineError
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_LOOK_S)
        last_at, last_ran_s = looked_at, ran_s
        looked_at, (could_run, ran_s) = time.monotonic(), _runs(pid)
        had_s += ran_s - last_ran_s if could_run else looked_at - last_at
    return True


def is_shared(pid: int, place: Place) -> bool:
    """Whether another thread of the process waits for what comes over the same connection, under whatever number."""
    try:
        threads = [thread for thread in os.listdir(f"/proc/{pid}/task") if thread != str(pid)]
    except OSError:
        return False
    for thread in threads:
        try:
            words = _waited_for(f"/proc/{pid}/task/{thread}/syscall")
            if not words or int(words[0]) not in {*READING.get(os.uname().machine, ()), place.number}:
                continue
            if os.readlink(f"/proc/{pid}/fd/{int(words[1], 16)}") == place.connection:
                return True
        except OSError:  # it has ended, or that descriptor has been closed
            continue
    return False


def _runs(pid: int) -> tuple[bool, float]:
    """Whether a process runs or could, and the seconds that it has had of a core; neither if the kernel is silent."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            state = file.read().rpartition(")")[2].split()[0]
        with open(f"/proc/{pid}/schedstat") as file:
            return state == "R", int(file.read().split()[0]) / 1e9
    except OSError:
        return False, 0.0


def _waited_for(path: str) -> list[str]:
    """The number of the system call, its six arguments, the stack pointer and the place in the program, or nothing."""
    with open(path) as file:
        words = file.read().split()
    return words if len(words) == 9 else []  # "running" is all that is said of who runs
