"""The referee's side of one worker process: asking it, stopping it while it is not its turn, ending it."""

import contextlib
import os
import select
import shutil
import signal
import socket
import time
from pathlib import Path
from typing import Any

from tasks.errors import WorkerError
from tasks.judge.cuda import DeviceArena
from tasks.judge.lease import ALONE, Lease
from tasks.judge.wire import Arena, Channel, DeadlineError, WireError

START_S = 120.0
END_S = 10.0


class Failure(Exception):
    """A worker answered that its program failed: kind is "raised", "build" or "output"."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(kind)
        self.kind = kind
        # JSON can carry halves of surrogate pairs, which nothing can store.
        self.text = text.encode("utf-8", "replace").decode().replace("\0", "")


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
    ) -> None:
        self.arena = arena
        self._lease = lease
        self._waited_s = 0.0
        self.walls: list[str] = []
        self.reads_installation = False
        self.pid = 0
        self._supervisor_pid = 0
        self._stopped: list[int] = []
        self._channel = Channel(connection, log_fd)
        self._life_fd = life_fd
        self._pid_fd = -1
        self._scratch = scratch
        self._last_id = 0

    def await_start(self) -> None:
        """Wait until the worker stands behind its walls.

        Raises:
            WorkerError: if it does not; no candidate is to blame before it is loaded.
        """
        deadline = time.monotonic() + START_S
        try:
            if not select.select([self._life_fd], [], [], START_S)[0]:
                raise DeadlineError
            self._supervisor_pid, self.pid = (int(word) for word in os.read(self._life_fd, 64).split())
            self._pid_fd = os.pidfd_open(self.pid)
            answer, _ = self._channel.receive(deadline)
            self.walls = [str(wall) for wall in answer["walls"]]
            self.reads_installation = bool(answer["reads_installation"])
        except (WireError, DeadlineError, OSError, KeyError, ValueError) as error:
            self.end()
            raise WorkerError(f"a worker process did not start: {error!r} {self._channel.log}") from error

    def ask(self, operation: str, deadline: float, **fields: Any) -> dict[str, Any]:
        """What the worker answers; see time_ask."""
        return self.time_ask(operation, deadline, **fields)[0]

    def time_ask(self, operation: str, deadline: float, **fields: Any) -> tuple[dict[str, Any], float]:
        """The worker's answer, and the ms between our sending and the kernel's taking of the answer.

        Between answers the worker is stopped: it can neither work ahead, nor go on working unseen, nor disturb the
        worker whose turn it is. Waiting for the device moves the deadline.

        Raises:
            Failure: if the program failed while obeying.
            DeadlineError: if there is no answer by the deadline, on time.monotonic.
            WireError: if the process ended or answers nonsense.
        """
        if self._lease is None:
            answer, taken_ms = self._exchange(operation, deadline, fields)
        else:
            with self._lease.turn(operation) as waited_s:
                self._waited_s += waited_s
                answer, taken_ms = self._exchange(operation, deadline + self._waited_s, fields)
                if operation in ALONE:
                    self._lease.await_quiet()
        if answer.get("id") != self._last_id:
            raise WireError("the process sent an answer that was not asked for")
        failure = answer.get("error")
        if failure is not None:
            if not isinstance(failure, dict):
                raise WireError("the process sent something that is not an answer")
            raise Failure(str(failure.get("kind", "raised")), str(failure.get("text", "")))
        return answer, taken_ms

    def _exchange(self, operation: str, deadline: float, fields: dict[str, Any]) -> tuple[dict[str, Any], float]:
        self._last_id += 1
        self.thaw()
        sent_at = self._channel.send({"op": operation, "id": self._last_id, **fields})
        answer, answered_at = self._channel.receive(deadline)
        self._freeze()
        return answer, (answered_at - sent_at) / 1e6

    @property
    def log(self) -> str:
        return self._channel.log

    def thaw(self) -> None:
        """Let the worker run although nothing was asked of it."""
        self._signal(signal.SIGCONT)
        for pid in self._stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self._stopped.clear()

    def _freeze(self) -> None:
        self._signal(signal.SIGSTOP)
        # A stopped process starts no others, so this ends as soon as a look finds nothing new.
        while new := [pid for pid in descendants(self._supervisor_pid) if pid not in (self.pid, *self._stopped)]:
            for pid in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            self._stopped += new

    def end(self) -> None:
        """End the worker with everything it started, and wait until nothing of it is left."""
        self._signal(signal.SIGKILL)
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
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _signal(self, number: int) -> None:
        if self._pid_fd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pid_fd, number)


def descendants(pid: int) -> list[int]:
    """Processes below this one at present, as far as the kernel lists them."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as children:
                for child in children.read().split():
                    found += [int(child), *descendants(int(child))]
    return found
