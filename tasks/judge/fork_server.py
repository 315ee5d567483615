"""Starting the fork server with a scrubbed environment, and having it start workers."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tasks.errors import FullDeviceError, MachineError, WorkerError
from tasks.judge.compilers import GRAPHS
from tasks.judge.cuda import MEMORY_SHARE, Device, DeviceArena
from tasks.judge.device_files import device_files
from tasks.judge.lease import Lease
from tasks.judge.processes import END_S, START_S, WorkerProcess
from tasks.judge.walls.cgroup import ControlGroups
from tasks.judge.walls.crowd import Crowd
from tasks.judge.walls.sandbox import MAX_PROCESSES, SCRATCH_BYTES, Limits
from tasks.judge.walls.scratch import CACHE_REMEDY, RESERVE_BYTES, SCRATCH_REMEDY, compiler_cache, require_space
from tasks.judge.wire import Arena

PROGRAM = "tasks.judge.zygote"
STARTS = 3
LOAD_S = 300.0
TOGETHER_BYTES = 2 << 30  # beyond what one process may use: for compilers, and the scratch folder, which lies in memory
DEVICE_BYTES = 8 << 30  # what a driver keeps of its own, and for the larger compilers
HEADER_BYTES = 256 << 20  # the precompiled headers of torch 2.13 take 150 MiB
# Everything else is left behind: a candidate finds no token, no proxy and no path of the user in its environment.
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "CUDA_HOME", "CC", "CXX")
OWN_VARIABLES = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",  # on its one core a team that spins waits for itself
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "USER": "nobody",  # asked for by the compiler of graphs, and workers have a number only
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONSAFEPATH": "1",  # a random.py in the folder where the judge is used must not stand for the library's
    "PYTHONUNBUFFERED": "1",  # what is printed before a kill is kept
    "PYTHONIOENCODING": "utf-8:replace",
    # Without these two, mapping and unmapping of large temporaries outweighs the work of small operators.
    "MALLOC_MMAP_THRESHOLD_": "268435456",
    "MALLOC_TRIM_THRESHOLD_": "536870912",
}


class ForkServer:
    """A fork server (tasks/judge/zygote.py) and the right to have it start workers. Spawning is thread safe."""

    def __init__(self, scratch: Path, device: Device | None = None, lease: Lease | None = None) -> None:
        """Start it.

        Args:
            device: where programs run; None for the processor, and then they see no other.
            lease: who may use that device.
        """
        self._scratch = scratch
        self._device = device
        self._lease = lease
        self._device_files = None if device is None else device_files(device.uuid)
        self._compiler_cache = compiler_cache(scratch)
        self._lock = threading.Lock()
        self._num_spawned = 0
        self._loaded: set[str] = set()
        self._log_path = scratch / "zygote.log"
        self.facts = self._start()
        self._groups = ControlGroups(scratch.name)

    def _start(self) -> dict[str, Any]:
        """What it says of itself. One that is killed meanwhile, as where memory is short, is started again."""
        for _ in range(STARTS):
            self._launch()
            if (facts := self._await_start()) is not None:
                return facts
            self._control.close()
        name = signal.Signals(-self._process.returncode).name
        remedy = "is memory short?" if name == "SIGKILL" else "does torch run on this processor?"
        words = f"the judge's fork server was ended by {name} {STARTS} times while it started; {remedy}"
        raise MachineError(f"{words}\n{self._last_words}".rstrip())

    def _launch(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", PROGRAM, str(theirs.fileno())],
                env=_scrubbed(os.environ, self._device),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is the referee's to handle
            )

    def _await_start(self) -> dict[str, Any] | None:
        """What it says of itself, or nothing where a signal ended it."""
        has_moved = bool(select.select([self._control], [], [], START_S)[0])
        if has_moved and (frame := self._control.recv(1 << 16)):
            facts: dict[str, Any] = json.loads(frame)
            return facts
        with contextlib.suppress(subprocess.TimeoutExpired):
            if has_moved and self._process.wait(END_S) < 0:
                return None
        self._process.kill()
        self._process.wait()
        raise MachineError(f"the judge's fork server did not start:\n{self._last_words}")

    @property
    def _last_words(self) -> str:
        try:
            return self._log_path.read_text(errors="replace")[-2_000:]
        except OSError:  # the judge has been closed meanwhile
            return ""

    def load_compilers(self, names: Collection[str]) -> None:
        """Load compilers (tasks/judge/compilers.py) before the next worker starts, as far as that pays here.

        Once a judge that takes seconds, and on a device a copy tries it first; for the headers of the one of graphs 20
        more once a machine.

        Raises:
            MachineError: if those headers are still to be compiled and will not fit on the disk.
            WorkerError: if the fork server ends meanwhile, or takes too long.
        """
        with self._lock:
            # On a processor the others load in a moment.
            wanted = {name for name in names if self._device is not None or name == GRAPHS} - self._loaded
            if not wanted:
                return
            if self._device is None and not (self._compiler_cache / "complete").exists():
                require_space(self._compiler_cache, num_bytes=HEADER_BYTES, remedy=CACHE_REMEDY)
            where = {"cache": str(self._compiler_cache), "scratch": str(self._scratch)}
            self._send(
                {"op": "load_compilers", "names": sorted(wanted), "for_device": self._device is not None, **where}, []
            )
            self._await_loaded()
            self._loaded |= wanted

    def _await_loaded(self) -> None:
        try:
            if select.select([self._control], [], [], LOAD_S)[0] and self._control.recv(1 << 16):
                return
        except (OSError, ValueError):  # it has died, or was closed meanwhile
            pass
        self._process.kill()  # whoever asks again starts another
        self._process.wait()
        raise WorkerError(f"the judge's fork server failed to load compilers:\n{self._last_words}")

    def spawn(
        self,
        *,
        arena_bytes: int,
        core: int,
        uid: int | None,
        memory_bytes: int,
        cpu_s: int,
        drawn_bytes: int = 0,
        memory_share: float = MEMORY_SHARE,
        has_one_queue: bool = False,
    ) -> WorkerProcess:
        """Start a worker behind its walls.

        Args:
            drawn_bytes: how much it may draw at once; on a device that takes room besides the arena's.
            memory_share: of a device's memory, for what its program allocates there.
            has_one_queue: for programs that are not timed: one queue of work on a device instead of eight. With others
                beside it, the driver makes and ends such a process in three fifths of the time.

        Raises:
            WorkerError: if the zygote has gone or the worker does not start.
            FullDeviceError: if others leave the device no memory for it.
            MachineError: if the disk has no room for the worker's folder.
        """
        with self._lock:
            self._num_spawned += 1
            scratch = self._scratch / f"worker-{self._num_spawned}"
        with contextlib.ExitStack() as unfinished:
            arena = self._arena(arena_bytes, drawn_bytes)
            unfinished.callback(arena.close)
            try:
                scratch.mkdir(mode=0o700)
            except OSError as error:
                raise MachineError(f"the judge cannot make {scratch}: {error}; {SCRATCH_REMEDY}") from error
            crowd = self._crowd(memory_bytes + arena_bytes, scratch)
            unfinished.callback(crowd.close)
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            log_read, log_write = os.pipe()
            life_read, life_write = os.pipe()
            worker = WorkerProcess(ours, log_read, life_read, arena, scratch, self._lease, crowd)
            unfinished.pop_all()
        limits = Limits(
            memory_bytes=memory_bytes,
            cpu_s=cpu_s,
            core=core,
            uid=uid,
            scratch=str(scratch),
            user_home=os.path.expanduser("~"),
            compiler_cache=str(self._compiler_cache),
            device_files=self._device_files,
            max_processes=None if crowd.limits_processes else MAX_PROCESSES,
        )
        request = {
            "op": "spawn",
            "limits": limits.to_json(),
            "arena_bytes": arena.num_bytes,
            "memory_share": memory_share,
            "has_one_queue": has_one_queue,
            "entrances": crowd.entrances,
        }
        try:
            with self._lock:
                self._send(request, [theirs.fileno(), log_write, life_write, *arena.fds])
        finally:
            theirs.close()
            os.close(log_write)
            os.close(life_write)
        worker.await_start()
        return worker

    def _arena(self, num_bytes: int, drawn_bytes: int) -> Arena | DeviceArena:
        if self._device is None:
            return Arena(num_bytes)
        try:
            return DeviceArena(self._device, num_bytes, drawn_bytes=drawn_bytes)
        except MemoryError as error:
            raise FullDeviceError(f"no worker can start: {error}") from error

    def _crowd(self, memory_bytes: int, scratch: Path) -> Crowd:
        """What all processes of a worker may use together."""
        memory_bytes += TOGETHER_BYTES + (DEVICE_BYTES if self._device else 0)
        return Crowd(
            self._groups.take(memory_bytes=memory_bytes, processes=MAX_PROCESSES),
            self._groups.give_back,
            memory_bytes=memory_bytes,
            processes=MAX_PROCESSES,
            disk_bytes=SCRATCH_BYTES,
            scratch=scratch,
        )

    def _send(self, request: dict[str, Any], fds: list[int]) -> None:
        try:
            socket.send_fds(self._control, [json.dumps(request).encode()], fds)
        except OSError as error:
            raise WorkerError(f"the judge's fork server has gone: {error}") from error

    def require_space(self) -> None:
        """Refuse to blame a program for a failure while our disks are full; for when its own files are gone.

        Raises:
            MachineError: naming the folder whose disk is full.
        """
        require_space(self._scratch, num_bytes=RESERVE_BYTES, remedy=SCRATCH_REMEDY)
        require_space(self._compiler_cache, num_bytes=RESERVE_BYTES, remedy=CACHE_REMEDY)

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
        self._groups.close()


def _scrubbed(environment: Mapping[str, str], device: Device | None) -> dict[str, str]:
    project = str(Path(__file__).resolve().parents[2])
    passed_on = {name: environment[name] for name in PASSED_ON if name in environment}
    visible = {"CUDA_VISIBLE_DEVICES": device.uuid if device else ""}
    return passed_on | OWN_VARIABLES | visible | {"HOME": tempfile.gettempdir(), "PYTHONPATH": project}
