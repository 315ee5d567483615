"""The referee's side of the processes: starting the zygote, starting workers, asking them, ending them."""

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.errors import MachineError, WorkerError
from tasks.judge.sandbox import Limits
from tasks.judge.wire import Arena, Channel, DeadlineError, WireError

START_S = 120.0
END_S = 10.0
# Everything else is left behind: a candidate finds no token, no proxy and no path of the user in its environment.
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "CUDA_HOME", "CC", "CXX")
OWN_VARIABLES = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    # Without these two, mapping and unmapping of large temporaries outweighs the work of small operators.
    "MALLOC_MMAP_THRESHOLD_": "268435456",
    "MALLOC_TRIM_THRESHOLD_": "536870912",
}


class Failure(Exception):
    """A worker answered that its program failed: kind is "raised", "build" or "output"."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class WorkerProcess:
    """One worker, its arena and what it printed."""

    def __init__(self, connection: socket.socket, log_fd: int, life_fd: int, arena: Arena, scratch: Path) -> None:
        self.arena = arena
        self.walls: list[str] = []
        self.pid = 0
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
            self.pid = int(os.read(self._life_fd, 32) or 0)
            self._pid_fd = os.pidfd_open(self.pid)
            answer, _ = self._channel.receive(deadline)
            self.walls = [str(wall) for wall in answer["walls"]]
        except (WireError, DeadlineError, OSError, KeyError, ValueError) as error:
            self.end()
            raise WorkerError(f"a worker process did not start: {error!r} {self._channel.log}") from error

    def ask(self, operation: str, deadline: float, **fields: Any) -> dict[str, Any]:
        """What the worker answers; see time_ask."""
        return self.time_ask(operation, deadline, **fields)[0]

    def time_ask(self, operation: str, deadline: float, **fields: Any) -> tuple[dict[str, Any], float]:
        """The worker's answer, and the ms between our sending and the kernel's taking of the answer.

        Raises:
            Failure: if the program failed while obeying.
            DeadlineError: if there is no answer by the deadline, on time.monotonic.
            WireError: if the process ended or answers nonsense.
        """
        self._last_id += 1
        sent_at = self._channel.send({"op": operation, "id": self._last_id, **fields})
        answer, answered_at = self._channel.receive(deadline)
        if answer.get("id") != self._last_id:
            raise WireError("the process sent an answer that was not asked for")
        failure = answer.get("error")
        if failure is not None:
            if not isinstance(failure, dict):
                raise WireError("the process sent something that is not an answer")
            raise Failure(str(failure.get("kind", "raised")), str(failure.get("text", "")))
        return answer, (answered_at - sent_at) / 1e6

    @property
    def log(self) -> str:
        return self._channel.log

    def freeze(self) -> None:
        """Stop the worker while it is not its turn, so that it cannot work ahead or disturb the other one."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

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


class Zygote:
    """The fork server's owner. Spawning is thread safe."""

    def __init__(self, scratch: Path, *, inductor_cache: Path | None) -> None:
        self._scratch = scratch
        self._inductor_cache = inductor_cache
        self._lock = threading.Lock()
        self._num_spawned = 0
        self._is_compiler_warm = False
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tasks.judge.zygote", str(theirs.fileno())],
                env=_scrubbed(os.environ),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is the referee's to handle
            )
        self.facts = self._await_start()

    def _await_start(self) -> dict[str, Any]:
        if select.select([self._control], [], [], START_S)[0] and (frame := self._control.recv(1 << 16)):
            facts: dict[str, Any] = json.loads(frame)
            return facts
        self._process.kill()
        assert self._process.stderr is not None
        words = self._process.stderr.read().decode(errors="replace")[-2_000:]
        raise MachineError(f"the judge's fork server did not start:\n{words}")

    def warm_compiler(self) -> None:
        """Load the compiler of graphs before the next worker starts; costs a second, once."""
        with self._lock:
            if not self._is_compiler_warm:
                self._send({"op": "warm_compiler"}, [])
                self._is_compiler_warm = True

    def spawn(self, *, arena_bytes: int, core: int, uid: int | None, memory_bytes: int, cpu_s: int) -> WorkerProcess:
        """Start a worker behind its walls.

        Raises:
            WorkerError: if the zygote has gone or the worker does not start.
        """
        with self._lock:
            self._num_spawned += 1
            scratch = self._scratch / f"worker-{self._num_spawned}"
        scratch.mkdir(mode=0o700)
        limits = Limits(
            memory_bytes=memory_bytes,
            cpu_s=cpu_s,
            core=core,
            uid=uid,
            scratch=str(scratch),
            inductor_cache=str(self._inductor_cache) if self._inductor_cache else None,
        )
        arena = Arena(arena_bytes)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        log_read, log_write = os.pipe()
        life_read, life_write = os.pipe()
        worker = WorkerProcess(ours, log_read, life_read, arena, scratch)
        request = {"op": "spawn", "limits": limits.to_json(), "arena_bytes": arena.num_bytes}
        try:
            with self._lock:
                self._send(request, [theirs.fileno(), arena.fd, log_write, life_write])
        finally:
            theirs.close()
            os.close(log_write)
            os.close(life_write)
        worker.await_start()
        return worker

    def _send(self, request: dict[str, Any], fds: list[int]) -> None:
        try:
            socket.send_fds(self._control, [json.dumps(request).encode()], fds)
        except OSError as error:
            raise WorkerError(f"the judge's fork server has gone: {error}") from error

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._control.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()


def _scrubbed(environment: Mapping[str, str]) -> dict[str, str]:
    project = str(Path(__file__).resolve().parents[2])
    passed_on = {name: environment[name] for name in PASSED_ON if name in environment}
    home = {"JUDGE_USER_HOME": os.path.expanduser("~"), "HOME": tempfile.gettempdir(), "PYTHONPATH": project}
    return passed_on | OWN_VARIABLES | home
