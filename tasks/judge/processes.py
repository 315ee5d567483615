"""The referee's side of one worker process: asking it, stopping it while it is not its turn, ending it."""

import contextlib
import os
import select
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tasks.errors import FullDeviceError, WorkerError
from tasks.judge import blocks, remote_memory
from tasks.judge.call_frames import MARK, short_answer
from tasks.judge.cuda import DeviceArena
from tasks.judge.device_memory import is_about_full_device
from tasks.judge.lease import ALONE, AT_LARGE, MAY_COMPILE, Lease
from tasks.judge.waiting_place import Place, comes_to, first_place, is_shared
from tasks.judge.walls.crowd import Crowd
from tasks.judge.wire import Arena, Channel, DeadlineError, WireError, decoded, encoded, readable

START_S = 120.0
END_S = 10.0
RETURN_S = 5.0
"""Of its own time, for coming back to where questions are waited for, which takes next to none."""
STOP_S = 10.0
"""For being stopped, which takes no longer than the longest of the system calls that its threads are in."""
STOP_PAUSE_S, LONGEST_STOP_PAUSE_S = 2e-5, 1e-3
"""Ever rarer looks: the referee is on the very core on which the others have to run until they stop."""
STARTING, CLONE_VFORK = {"x86_64": (58, 56), "aarch64": (None, 220)}, 0x4000
"""The numbers of vfork, where there is one, and clone, and how the latter says that it is to be the former."""
READ_BYTES = 1 << 12
_CPU_CLOCK = 2  # the number of a process's clock is made of this and its id, as by clock_getcpuclockid
FORGIVEN_S = 600.0
"""For which the device may be busy after a worker's answers and the deadline moves: not for ever, as nobody can tell
whose kernels those are while others are at large."""

Framed = Callable[[int], bytes]
"""A question as a frame, given the id that its answer has to bear."""


class Failure(Exception):
    """A worker answered that its program failed: kind is "raised", "build", "output" or "size"."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(kind)
        self.kind = kind
        self.text = readable(text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """What one exchange took."""

    inner_ms: float
    """From our sending to the kernel's taking of the answer: the least that the worker can have worked."""
    outer_ms: float
    """From letting the worker run to telling it to stop, and what it took of a core from then on: the most."""


class WorkerProcess:
    """One worker, its arena and what it printed."""

    def __init__(
        self,
        connection: socket.socket,
        log_fd: int,
        life_fd: int,
        arena: Arena | DeviceArena,
        scratch: Path,
        lease: Lease | None,
        crowd: Crowd,
    ) -> None:
        self.arena = arena
        self._crowd = crowd
        self._lease = lease
        self._waited_s = 0.0
        self._forgivable_s = FORGIVEN_S
        self._done: set[str] = set()
        self.walls: list[str] = []
        self.reads_installation = False
        self.is_readable = False  # whether outputs are read from its memory; else it copies them into the arena
        self.pid = 0
        self._supervisor_pid = 0
        self._stopped: list[int] = []
        self._let_run: list[int] = []  # what had been stopped before the worker was let run
        self._place: Place | None = None
        self._channel = Channel(connection, log_fd)
        self._life_fd = life_fd
        self._pid_fd = -1
        self._scratch = scratch
        self._last_id = 0

    def await_start(self) -> None:
        """Wait until the worker stands behind its walls.

        Raises:
            WorkerError: if it does not; no candidate is to blame before it is loaded.
            FullDeviceError: if that was because others have left its device no memory.
        """
        deadline = time.monotonic() + START_S
        try:
            if not select.select([self._life_fd], [], [], START_S)[0]:
                raise DeadlineError
            self._supervisor_pid, self.pid = (int(word) for word in os.read(self._life_fd, 64).split())
            self._pid_fd = os.pidfd_open(self.pid)
            answer = decoded(self._channel.receive(deadline)[0])
            self.walls = [str(wall) for wall in answer["walls"]]
            self._crowd.begin(self.walls)
            self.reads_installation = bool(answer["reads_installation"])
            # Where a process may handle its own page faults, whoever reads its memory can be made to wait for ever.
            is_safe = isinstance(self.arena, Arena) and "calls" in self.walls
            self.is_readable = is_safe and remote_memory.is_readable(self.pid, int(answer["probe"]))
            if isinstance(self.arena, Arena):  # on a device the loop is no part of what is timed
                self._place = first_place(self.pid)
        except (WireError, DeadlineError, OSError, KeyError, ValueError) as error:
            self.end()
            if self._lease is not None and is_about_full_device(self._channel.log):
                raise FullDeviceError("a worker process did not start: the device has no memory left for it") from error
            raise WorkerError(f"a worker process did not start: {error!r} {self._channel.log}") from error

    def ask(self, operation: str, deadline: float, **fields: Any) -> dict[str, Any]:
        """What the worker answers; see time_ask."""
        return self.time_ask(operation, deadline, in_json(operation, **fields))[0]

    def time_ask(
        self, operation: str, deadline: float, framed: Framed, *, lay_in: Callable[[], None] = lambda: None
    ) -> tuple[dict[str, Any], Taken]:
        """The worker's answer, and what it took.

        Between answers the worker is stopped: it can neither work ahead, nor go on working unseen, nor disturb the
        worker whose turn it is. Waiting for the device moves the deadline.

        Args:
            framed: the question as a frame.
            lay_in: puts the inputs into the arena, before the caches are flushed. Where the worker waits for a turn it
                is done within that: what is copied on a device disturbs whoever has its turn.

        Raises:
            Failure: if the program failed while obeying.
            DeadlineError: if there is no answer by the deadline, on time.monotonic.
            WireError: if the process ended or answers nonsense.
        """
        if self._lease is None:
            lay_in()
            answer, taken = self._exchange(deadline, framed)
        else:
            kind = "call" if operation in ALONE else operation
            may_compile = kind in MAY_COMPILE and kind not in self._done  # nothing that is timed
            self._done.add(kind)
            alone = operation in ALONE and not may_compile
            waits = not may_compile and operation not in AT_LARGE
            with self._lease.turn(self.pid, waits=waits) as waited_s:
                begun_at = time.monotonic()
                lay_in()
                if alone:
                    self._lease.flush()
                self._waited_s += waited_s + time.monotonic() - begun_at
                answer, taken = self._exchange(deadline + self._waited_s, framed)
                if alone:
                    answered_at = time.monotonic()
                    taken = replace(taken, outer_ms=taken.outer_ms + self._lease.await_quiet())
                    self._forgive(time.monotonic() - answered_at)
        if answer.get("id") != self._last_id:
            raise WireError("the process sent an answer that was not asked for")
        failure = answer.get("error")
        if failure is not None:
            if not isinstance(failure, dict):
                raise WireError("the process sent something that is not an answer")
            raise Failure(str(failure.get("kind", "raised")), str(failure.get("text", "")))
        return answer, taken

    def _forgive(self, quiet_s: float) -> None:
        """Move the deadline by what the device took to be quiet: others at large may have kept it busy for minutes."""
        forgiven_s = min(quiet_s, self._forgivable_s)
        self._forgivable_s -= forgiven_s
        self._waited_s += forgiven_s

    def referees_turn(self) -> contextlib.AbstractContextManager[None]:
        """The worker's device for what the referee computes with blocks there."""
        return self._lease.own_turn() if self._lease and blocks.has_cupy() else contextlib.nullcontext()

    def blame_for_memory(self) -> str:
        """What this worker has done that has left the device next to no memory, by a look just now; or nothing."""
        return self._lease.blame_for_memory(self.pid) if self._lease else ""

    def _exchange(self, deadline: float, framed: Framed) -> tuple[dict[str, Any], Taken]:
        self._last_id += 1
        frame = framed(self._last_id)
        self._look()
        thawed_at = time.time_ns()
        self.thaw()
        sent_at = time.time_ns()
        self._channel.send(frame)
        try:
            answer, answered_at = self._channel.receive(deadline, self._look if self._crowd.is_watched else None)
        except WireError as error:
            raise self._crowd.explained(error) from None
        told_at = time.time_ns()
        ran_on_ns = self._freeze()
        taken = Taken(inner_ms=(answered_at - sent_at) / 1e6, outer_ms=(told_at - thawed_at + ran_on_ns) / 1e6)
        return short_answer(answer) if answer[0] == MARK else decoded(answer), taken

    @property
    def log(self) -> str:
        return self._channel.log

    def _look(self) -> None:
        self._crowd.look(lambda: descendants(self._supervisor_pid))

    def thaw(self) -> None:
        """Let the worker run although nothing was asked of it."""
        self._signal(signal.SIGCONT)
        for pid in self._stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self._let_run, self._stopped = self._stopped, []

    def waits_in_its_place(self) -> bool:
        """Whether it waits for a question where it did before it had a program; taken for true if nobody can know.

        Nor is one that has ended called to account for it: whoever asks it next will notice.

        Raises:
            DeadlineError: if others keep it from its core for too long.
        """
        if self._place is None or self._has_ended:
            return True
        if is_shared(self.pid, self._place):
            return False
        if self._place.is_like(Place.of(self.pid)):
            return True
        self.thaw()  # it may have been stopped on its way there
        try:
            return comes_to(self.pid, self._place, within_s=RETURN_S) or self._has_ended
        finally:
            self._freeze()

    @property
    def _has_ended(self) -> bool:
        return bool(select.select([self._pid_fd], [], [], 0)[0])

    def _freeze(self) -> int:
        """Stop the worker and what it started, and wait until all of it has stopped.

        A thread stops when it comes back from the kernel. One in a long system call would share the core with the other
        program while that is timed, and so would dozens that were asleep, for a moment each.

        Returns:
            The ns of a core that they took meanwhile. Not how long it was, which depends on who else wants the core.

        Raises:
            WireError: if something runs on.
        """
        told_at = time.monotonic_ns()
        before = {pid: _took_ns(pid) for pid in (self.pid, *self._let_run)}
        is_asleep = not self._let_run and sleeps_alone(self.pid, self._supervisor_pid)
        self._signal(signal.SIGSTOP)
        if is_asleep and _took_ns(self.pid) == before[self.pid]:
            return 0  # it has nothing left to do but to stop
        seen = {self.pid}
        deadline, pause_s, num_quiet = time.monotonic() + STOP_S, STOP_PAUSE_S, 0
        while True:
            found = stopped(self._supervisor_pid)
            new = found.keys() - seen
            running = [pid for pid, has_stopped in found.items() if not has_stopped]
            num_quiet = 0 if new or running else num_quiet + 1
            if num_quiet == 2 or (num_quiet and len(found) < 2):  # one of several may have woken another meanwhile
                return _ran_on_ns(before, found, most_ns=time.monotonic_ns() - told_at)
            seen |= new
            for pid in {*new, *running}:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            self._stopped += new
            if time.monotonic() > deadline:
                raise WireError(f"the process did not stop within {STOP_S:.0f} s: it stays in a system call")
            if running:
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_STOP_PAUSE_S)

    def kill(self) -> None:
        """Begin to end the worker, without waiting for it."""
        self._signal(signal.SIGKILL)

    def end(self) -> None:
        """End the worker with everything it started, and wait until nothing of it is left."""
        self.kill()
        deadline = time.monotonic() + END_S
        while (left_s := deadline - time.monotonic()) > 0:
            if select.select([self._life_fd], [], [], left_s)[0] and not os.read(self._life_fd, 32):
                break
        _ = self._channel.log  # what it printed last
        self._channel.close()
        os.close(self._life_fd)
        if self._pid_fd >= 0:
            os.close(self._pid_fd)
            self._pid_fd = -1
        self.arena.close()
        self._crowd.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _signal(self, number: int) -> None:
        if self._pid_fd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pid_fd, number)


def in_json(operation: str, **fields: Any) -> Framed:
    """A question whose answer nobody waits for with a stopwatch."""
    return lambda number: encoded({"op": operation, "id": number, **fields})


def descendants(pid: int) -> list[int]:
    """Processes below this one at present, as far as the kernel lists them."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as children:
                for child in children.read().split():
                    found += [int(child), *descendants(int(child))]
    return found


def sleeps_alone(pid: int, supervisor_pid: int) -> bool:
    """Whether a process below a supervisor is one thread that waits for something, with no other process beside it."""
    try:
        words = _stat(pid, str(pid))
        is_one_asleep = words[0] == b"S" and words[17] == b"1"
        return (
            # Orphans of its children come up to the supervisor, where they are looked for last.
            is_one_asleep and not _children(pid, str(pid)) and _children(supervisor_pid, str(supervisor_pid)) == [pid]
        )
    except OSError:
        return False


def stopped(supervisor_pid: int) -> dict[int, bool]:
    """The processes below a supervisor, which has one thread, and whether all threads of each have stopped."""
    found: dict[int, bool] = {}
    for _ in range(2):  # orphans may have come up to it while we looked farther down
        with contextlib.suppress(OSError):
            for pid in _children(supervisor_pid, str(supervisor_pid)):
                _look_over(pid, found)
    return found


def _look_over(pid: int, found: dict[int, bool]) -> None:
    """Add a process and those below it, unless it has gone or been found."""
    if pid in found:
        return
    with contextlib.suppress(OSError):
        threads = os.listdir(f"/proc/{pid}/task")
        found[pid] = True
        for thread in threads:
            try:
                found[pid] &= _has_stopped(pid, thread)
                for child in _children(pid, thread):  # after its state: what has stopped starts no others
                    _look_over(child, found)
            except OSError:  # it has gone, and its children are another's, where we may have looked before
                found[pid] = False


def _has_stopped(pid: int, thread: str) -> bool:
    state = _stat(pid, thread)[0]
    if state == b"D":
        return _waits_for_child(pid, thread)
    return state in (b"T", b"t") or (state == b"Z" and thread == str(pid))  # the dead, too, hand over their children


def _waits_for_child(pid: int, thread: str) -> bool:
    """Whether it sleeps until a process that it has started runs a program, which that does when it is let run."""
    words = _read(f"/proc/{pid}/task/{thread}/syscall").split()
    if len(words) != 9:  # it runs by now
        return False
    number, flags = int(words[0]), int(words[1], 16)
    vfork, clone = STARTING.get(os.uname().machine, (None, None))
    return number == vfork or (number == clone and bool(flags & CLONE_VFORK))


def _stat(pid: int, thread: str) -> list[bytes]:
    """What the kernel says of a thread, from its state on."""
    return _read(f"/proc/{pid}/task/{thread}/stat").rpartition(b")")[2].split()


def _children(pid: int, thread: str) -> list[int]:
    return [int(child) for child in _read(f"/proc/{pid}/task/{thread}/children").split()]


def _ran_on_ns(before: Mapping[int, int], found: Iterable[int], *, most_ns: int) -> int:
    """What processes took of a core in this time, by what they had taken before it; those found are there after it.

    Of one that has begun since the last question, nobody knows what it took before, nor of one that has ended after.
    """
    ran_on_ns = sum(max(0, _took_ns(pid) - before[pid]) for pid in before.keys() & found)
    ran_on_ns += sum(most_ns for pid, took_ns in before.items() if took_ns and pid not in found)
    return ran_on_ns + sum(min(_took_ns(pid), most_ns) for pid in found if pid not in before)


def _took_ns(pid: int) -> int:
    """How long all threads of a process have had a core; 0 if it has ended."""
    try:
        return time.clock_gettime_ns(~pid << 3 | _CPU_CLOCK)
    except OSError:
        return 0


def _read(path: str) -> bytes:
    """A file of the kernel's, as cheaply as can be: after every answer some are read for every thread."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return b"".join(iter(lambda: os.read(fd, READ_BYTES), b""))
    finally:
        os.close(fd)
