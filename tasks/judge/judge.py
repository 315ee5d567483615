"""The judge: one object that owns the processes and turns candidates into verdicts."""

import contextlib
import os
import queue
import random
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tasks.errors import MachineError, WorkerError
from tasks.judge import environment
from tasks.judge.cuda import Device
from tasks.judge.fork_server import ForkServer
from tasks.judge.lease import Lease
from tasks.judge.processes import WorkerProcess
from tasks.judge.referee import Evidence, Examination, RefusedError
from tasks.judge.sandbox import FIRST_UID, NUM_UIDS
from tasks.judge.scratch import ScratchFolder
from tasks.judge.screen import Screened, screen
from tasks.judge.studies import Studies
from tasks.judge.study import ARENA_BYTES, BadProblemError
from tasks.judge.timing import PROTOCOL
from tasks.judge.verdict import Status, Verdict
from tasks.params import JudgeParams
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate

STUDY_MEMORY_BYTES = 8 << 30
STUDY_CPU_S = 24 * 3600
ATTEMPTS = 2
DISK_STATUSES = (Status.COMPILE_ERROR, Status.CRASHED)  # what a full disk looks like


@dataclass(frozen=True, kw_only=True, slots=True)
class _Slot:
    """A core to judge on, and the user that workers there become."""

    core: int
    uid: int | None


class Judge:
    """Judges candidates, params.workers of them at once, each pinned to a core of its own.

    Raises:
        MachineError: when entered on a machine that cannot judge.
    """

    def __init__(self, params: JudgeParams) -> None:
        self._params = params
        self._secret = secrets.token_hex(16)
        self._slots: queue.LifoQueue[_Slot] = queue.LifoQueue()
        self._studies = Studies()
        self._server: ForkServer | None = None
        self._server_lock = threading.Lock()
        self._scratch: ScratchFolder | None = None
        self._device: Device | None = None
        self._lease: Lease | None = None
        self.device = ""
        self.environment: Mapping[str, str] = {}

    def __enter__(self) -> Self:
        environment.require_linux()
        if self._params.device != "cpu":
            self._device = Device(int(self._params.device.removeprefix("cuda:")))
            self._lease = Lease(self._device)
        self._scratch = ScratchFolder.make()
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._studies.drop_all()
        if self._server is not None:
            self._server.close()
        if self._lease is not None:
            self._lease.close()
        if self._scratch is not None:
            self._scratch.remove()

    def judge(self, problem: Problem, candidate: Candidate, *, seed: int) -> Verdict:
        """What one candidate is worth. Safe to call from several threads; waits for a free core.

        Args:
            seed: decides the order of rounds and the choice of inputs and weights; inputs themselves also depend on a
                secret of this judge, so that no candidate can know them.

        Raises:
            WorkerError: if the judge's own processes failed twice; trying again may help.
            MachineError: if something failed while a disk that the judge writes to is full.
        """
        started = time.monotonic()
        evidence = Evidence()
        status, detail = Status.CORRECT, ""
        try:
            screened = screen(candidate.source)
            if screened.status is not None:
                raise RefusedError(screened.status, screened.detail)
            with self._slot() as slot:
                self._examine(slot, problem, candidate, screened, evidence, seed)
        except RefusedError as refused:
            status, detail = refused.status, refused.detail
            evidence.timing = None
        except BadProblemError as error:
            status, detail = Status.BAD_PROBLEM, str(error)
        return Verdict(
            candidate_id=candidate.candidate_id,
            problem_id=problem.problem_id,
            status=status,
            device=self.device,
            environment=self.environment,
            protocol=PROTOCOL,
            detail=detail,
            checks=tuple(evidence.checks),
            max_error=evidence.max_error,
            timing=evidence.timing,
            track=evidence.track,
            seconds=time.monotonic() - started,
            judged_at=time.time(),
        )

    def _examine(
        self, slot: _Slot, problem: Problem, candidate: Candidate, screened: Screened, evidence: Evidence, seed: int
    ) -> None:
        rng = random.Random(f"{self._secret} {seed} {candidate.candidate_id}")
        for attempt in range(1, ATTEMPTS + 1):
            evidence.checks.clear()
            server = self._living_fork_server()
            try:
                if screened.mentions_compile:
                    server.warm_compiler()
                self._examine_once(slot, server, problem, candidate, evidence, rng)
                return
            except WorkerError:
                server.require_space()
                if attempt == ATTEMPTS:
                    raise
            except (RefusedError, BadProblemError) as error:
                if not isinstance(error, RefusedError) or error.status in DISK_STATUSES:
                    server.require_space()
                raise

    def _examine_once(
        self,
        slot: _Slot,
        server: ForkServer,
        problem: Problem,
        candidate: Candidate,
        evidence: Evidence,
        rng: random.Random,
    ) -> None:
        def spawn() -> WorkerProcess:
            return server.spawn(
                arena_bytes=study.layout.num_bytes,
                core=slot.core,
                uid=slot.uid,
                memory_bytes=self._params.memory_bytes,
                cpu_s=int(2 * self._params.timeout_s) + 1,
            )

        study = self._studies.take(problem, lambda: self._spawn_study(slot, server))
        try:
            examination = Examination(study, spawn, self._params, evidence=evidence, rng=rng)
            try:
                examination.run(candidate)
            except RefusedError as refused:
                if not server.is_alive:  # every worker dies with it, and the candidate is not to blame
                    raise WorkerError("the judge's fork server has died") from refused
                raise
            finally:
                examination.close()
        except WorkerError:
            self._studies.forget(study)
            raise
        finally:
            self._studies.give_back(study)

    def _spawn_study(self, slot: _Slot, server: ForkServer) -> WorkerProcess:
        return server.spawn(
            arena_bytes=ARENA_BYTES, core=slot.core, uid=slot.uid, memory_bytes=STUDY_MEMORY_BYTES, cpu_s=STUDY_CPU_S
        )

    @contextlib.contextmanager
    def _slot(self) -> Iterator[_Slot]:
        """A free core, with this thread on it: the referee and both workers take turns there."""
        if self._scratch is None:
            raise MachineError("the judge is not open; use it in a with statement")
        slot = self._slots.get()
        cores = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {slot.core})
            yield slot
        finally:
            os.sched_setaffinity(0, cores)
            self._slots.put(slot)

    def _living_fork_server(self) -> ForkServer:
        with self._server_lock:
            if self._server is None or not self._server.is_alive:
                if self._server is not None:
                    self._studies.drop_all()
                    self._server.close()
                assert self._scratch is not None
                self._server = ForkServer(self._scratch.path, self._device, self._lease)
            return self._server

    def _start(self) -> None:
        server = self._living_fork_server()
        cores = sorted(os.sched_getaffinity(0))
        walls = self._walls(server, cores[0])
        for index in reversed(range(self._params.workers)):
            uid = FIRST_UID + index % NUM_UIDS if "uid" in walls else None
            self._slots.put(_Slot(core=cores[index % len(cores)], uid=uid))
        self.device = self._device.name if self._device else environment.device_model()
        self.environment = environment.describe(server.facts, walls, self._device)

    def _walls(self, server: ForkServer, core: int) -> list[str]:
        """The walls that can be put up here. Another user is one only if that user can read the installation."""
        last: object = "it cannot read the Python installation"
        for uid in (FIRST_UID, None) if os.geteuid() == 0 else (None,):
            try:
                probe = server.spawn(arena_bytes=1 << 20, core=core, uid=uid, memory_bytes=1 << 30, cpu_s=60)
            except WorkerError as error:  # another user may not use the device
                last = error
                continue
            probe.end()
            if probe.reads_installation:
                return [*server.facts["walls"], *probe.walls]
        raise MachineError(f"no worker starts behind the judge's walls: {last}")
