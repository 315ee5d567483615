"""The judge: one object that owns the processes and turns candidates into verdicts."""

import contextlib
import os
import random
import secrets
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Self, TypeGuard

from tasks.errors import FullDeviceError, MachineError, WorkerError
from tasks.judge import blocks, environment
from tasks.judge.cuda import ALONE_SHARE, MEMORY_SHARE, Device
from tasks.judge.device_memory import may_be_about_full_device
from tasks.judge.evidence import Evidence, RefusedError
from tasks.judge.fork_server import ForkServer
from tasks.judge.lease import Lease
from tasks.judge.long import OnProgress
from tasks.judge.pair import roomy_layout
from tasks.judge.processes import WorkerProcess
from tasks.judge.program import Layout
from tasks.judge.referee import Circumstances, Examination
from tasks.judge.reference import LARGE_LAYOUT, LAYOUT
from tasks.judge.room import HadCompany, MeasuredAlone, Room
from tasks.judge.screen import Screened, screen
from tasks.judge.slots import Seat, Slot, Slots, num_in_hand
from tasks.judge.studies import MAX_KEPT, MAX_KEPT_ON_DEVICE, Studies
from tasks.judge.study import BadProblemError
from tasks.judge.timing import protocol_of
from tasks.judge.verdict import Status, Verdict
from tasks.judge.walls.sandbox import FIRST_UID, NUM_UIDS
from tasks.judge.walls.scratch import ScratchFolder
from tasks.params import JudgeParams
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate

STUDY_MEMORY_BYTES = 8 << 30
STUDY_CPU_S = 24 * 3600
ATTEMPTS = 2
SWITCH_S = 2e-4
"""With a device many threads compare large outputs; the one that stops a worker must not wait 5 ms for each of them."""
FULL_REMEDY = "lower judge.workers, end what else uses the device, or judge on a larger one"
NOT_OPEN = "the judge is not open; use it in a with statement"
DISK_STATUSES = (Status.COMPILE_ERROR, Status.CRASHED)  # what a full disk looks like


class Judge:
    """Judges candidates, each pinned to a core of its own; params.workers of them are measured at once.

    Args:
        share: of the machine's cores and of the device's memory, which others may need too: for what is built ahead.

    Raises:
        MachineError: when entered on a machine that cannot judge.
    """

    def __init__(self, params: JudgeParams, *, share: float = 1.0) -> None:
        self._params = params
        self._share = share
        self._seats = threading.Semaphore(params.workers)
        self.workers = params.workers
        """How many candidates it takes at once, those included that only build, on a device."""
        self._secret = secrets.token_hex(16)
        self._slots = Slots()
        self._room = Room()
        self._studies = (
            Studies(max_kept=MAX_KEPT, layouts=[LAYOUT])
            if params.device == "cpu"
            else Studies(max_kept=MAX_KEPT_ON_DEVICE, layouts=[LAYOUT, LARGE_LAYOUT])
        )
        self._server: ForkServer | None = None
        self._server_lock = threading.Lock()
        self._num_out_of_time = 0
        self._is_open = False
        self._scratch: ScratchFolder | None = None
        self._device: Device | None = None
        self._lease: Lease | None = None
        self._memory = contextlib.ExitStack()
        self.device = ""
        self.environment: Mapping[str, str] = {}

    def __enter__(self) -> Self:
        environment.require_linux()
        if self._params.device != "cpu":
            self._device = Device(int(self._params.device.removeprefix("cuda").removeprefix(":") or 0))
            self._lease = Lease(self._device)
            self._usual_switch_s = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_S)
        self._scratch = ScratchFolder.make()
        self._is_open = True
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._server_lock:  # or a judgement under way would start another fork server, and go on
            self._is_open = False
        self._studies.drop_all()
        if self._server is not None:
            self._server.close()
        if self._lease is not None:
            self._lease.close()
            sys.setswitchinterval(self._usual_switch_s)
        self._slots.close()
        if self._scratch is not None:
            self._scratch.remove()
        self._memory.close()

    @property
    def protocol(self) -> str:
        """The version of the way of judging; verdicts of different tiers have different ones."""
        return protocol_of(device=self._params.device, tier=self._params.tier)

    def judge(
        self,
        problem: Problem,
        candidate: Candidate,
        *,
        seed: int,
        best_speedup: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Verdict:
        """What one candidate is worth. Safe to call from several threads; waits for a free core.

        A judgement that others of this judge may have disturbed is done once more when those have ended.

        Args:
            seed: decides the order of rounds and the choice of inputs and weights; inputs themselves also depend on a
                secret of this judge, so that no candidate can know them.
            best_speedup: the best known for the problem, if any: a jump over it is timed twice.
            on_progress: called by the long tier about once a second with the share of the window that has passed and
                what is known, in words. What it raises ends the judgement.

        Raises:
            WorkerError: if the judge's own processes failed twice; trying again may help.
            FullDeviceError: if the device had no memory for it, not even while this process judged nothing else.
            MachineError: if something failed while a disk that the judge writes to is full.
        """
        started = time.monotonic()
        evidence = Evidence()
        status, detail = Status.CORRECT, ""
        try:
            screened = screen(candidate.source)
            if screened.status is not None:
                raise RefusedError(screened.status, screened.detail)
            if not self._is_open:
                raise MachineError(NOT_OPEN)
            circumstances = Circumstances(
                rng=random.Random(f"{self._secret} {seed} {candidate.candidate_id}"),
                device=self.device,
                best_speedup=best_speedup,
                on_progress=on_progress or (lambda share, words: None),
            )
            with self._slots.taken() as slot:
                self._examine(slot, problem, candidate, screened, evidence, circumstances)
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
            protocol=self.protocol,
            detail=detail,
            checks=tuple(evidence.checks),
            max_error=evidence.max_error,
            timing=evidence.timing,
            track=evidence.track,
            seconds=time.monotonic() - started,
            judged_at=time.time(),
        )

    def _examine(
        self,
        slot: Slot,
        problem: Problem,
        candidate: Candidate,
        screened: Screened,
        evidence: Evidence,
        circumstances: Circumstances,
    ) -> None:
        num_failed, is_crowded, is_held_up, is_noisy = 0, False, False, False
        out_of_time: tuple[int, RefusedError] | None = None
        while True:
            with self._entrance(is_crowded, is_held_up, is_noisy) as (had_company, seat):
                if out_of_time is not None:  # those who were beside it have ended by now
                    number, refusal = out_of_time
                    if number == self._num_out_of_time:
                        raise refusal
                    out_of_time = None
                evidence.clear()
                if not screened.compilers:  # all others may build for minutes before they are measured
                    seat.take()
                server = self._living_fork_server()
                try:
                    server.load_compilers(screened.compilers)
                    memory_share = ALONE_SHARE if is_crowded or self.workers == 1 else MEMORY_SHARE
                    self._examine_once(slot, server, problem, candidate, evidence, circumstances, seat, memory_share)
                    return
                except (WorkerError, RefusedError, BadProblemError) as error:
                    _let_go(error)
                    if not isinstance(error, RefusedError) or error.status in DISK_STATUSES:
                        server.require_space()
                    if self._may_be_crowded(error):
                        if is_crowded and isinstance(error, FullDeviceError):
                            raise FullDeviceError(f"{error}; {FULL_REMEDY}") from error
                        if is_crowded:
                            raise
                        is_crowded = True
                    elif had_company() and self._may_be_disturbed(error) and not is_noisy:
                        is_noisy = True
                    elif had_company() and self._may_be_held_up(error):
                        is_held_up = True
                        out_of_time = self._next_out_of_time(), error
                    elif isinstance(error, WorkerError):
                        num_failed += 1
                        if num_failed == ATTEMPTS:
                            raise
                    else:
                        raise

    @contextlib.contextmanager
    def _entrance(
        self, is_crowded: bool, is_held_up: bool, is_noisy: bool
    ) -> Iterator[tuple[HadCompany, Seat | MeasuredAlone]]:
        """A way into the room for one judgement, by what became of it before."""
        if is_noisy and not is_crowded and not is_held_up:
            with MeasuredAlone(self._room) as stay:
                yield lambda: stay.had_company(), stay
            return
        if is_crowded:
            place = self._alone_with_all_memory()
        else:
            place = self._room.alone() if is_held_up else self._room.shared()
        with place as had_company, Seat(self._seats) as seat:
            yield had_company, seat

    @contextlib.contextmanager
    def _alone_with_all_memory(self) -> Iterator[HadCompany]:
        """Be inside with nobody else, and with nothing kept from before; what needs so much room is not kept either."""
        with self._room.alone() as had_company:
            self._studies.drop_all()
            with contextlib.nullcontext() if self._device is None else blocks.more_memory(self._device.index):
                try:
                    yield had_company
                finally:
                    self._studies.drop_all()

    def _may_be_disturbed(self, error: Exception) -> bool:
        """Whether a timing did not settle, perhaps for others' noise. In the long tier the caller decides on that."""
        return isinstance(error, RefusedError) and error.status is Status.UNSTABLE and self._params.tier != "long"

    def _may_be_held_up(self, error: Exception) -> TypeGuard[RefusedError]:
        """Whether somebody's kernel that does not end may have kept the device from one that ran out of time.

        Whoever did that runs out of time after those whom it held up, so that the last of them is to blame.
        """
        is_timeout = isinstance(error, RefusedError) and error.status is Status.TIMEOUT
        return is_timeout and self._device is not None

    def _next_out_of_time(self) -> int:
        with self._server_lock:
            self._num_out_of_time += 1
            return self._num_out_of_time

    def _may_be_crowded(self, error: Exception) -> bool:
        """Whether a judgement failed because others left its device no memory, whoever found that out."""
        if isinstance(error, RefusedError):
            is_apt = self._device is not None and error.status in DISK_STATUSES
            return is_apt and may_be_about_full_device(error.detail)
        if isinstance(error, BadProblemError):
            return self._device is not None and may_be_about_full_device(str(error))
        return isinstance(error, FullDeviceError)

    def _examine_once(
        self,
        slot: Slot,
        server: ForkServer,
        problem: Problem,
        candidate: Candidate,
        evidence: Evidence,
        circumstances: Circumstances,
        seat: Seat | MeasuredAlone,
        memory_share: float,
    ) -> None:
        params = self._params
        cpu_s = 3 * params.timeout_s + (params.long.window_s if params.tier == "long" else 0.0)

        def spawn() -> WorkerProcess:
            return server.spawn(
                arena_bytes=roomy_layout(study).num_bytes,
                core=slot.core,
                uid=slot.uid,
                memory_bytes=params.memory_bytes,
                cpu_s=int(cpu_s) + 1,
                memory_share=memory_share,
            )

        def spawn_study(layout: Layout) -> WorkerProcess:
            return server.spawn(
                arena_bytes=layout.num_bytes,
                drawn_bytes=layout.input_bytes,
                core=slot.core,
                uid=slot.uid,
                memory_bytes=STUDY_MEMORY_BYTES,
                cpu_s=STUDY_CPU_S,
                memory_share=memory_share,
                has_one_queue=True,
            )

        try:
            study = self._studies.take(problem, spawn_study)
        except MemoryError as error:
            if self._device is None:
                raise
            raise FullDeviceError(f"the problem cannot be studied: {error}") from error
        try:
            examination = Examination(study, spawn, params, evidence=evidence, circumstances=circumstances, seat=seat)
            try:
                examination.run(candidate)
            except RefusedError as refused:
                if not server.is_alive:  # every worker dies with it, and the candidate is not to blame
                    raise WorkerError("the judge's fork server has died") from refused
                raise
            finally:
                examination.close()
        except MemoryError as error:  # of the device, beside others
            self._studies.forget(study)
            raise FullDeviceError(f"the referee has no memory left for inputs and outputs: {error}") from error
        except WorkerError:
            self._studies.forget(study)
            raise
        finally:
            self._studies.give_back(study)

    def _living_fork_server(self) -> ForkServer:
        with self._server_lock:
            if not self._is_open:
                raise MachineError(NOT_OPEN)
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
        uids = range(FIRST_UID, FIRST_UID + NUM_UIDS) if "uid" in walls else ()
        if self._device is not None:
            memory_bytes = int(self._share * self._device.memory_bytes[1])
            own_cores = int(self._share * len(cores) / self._device.count)
            self.workers = num_in_hand(self._params.workers, cores=own_cores, memory_bytes=memory_bytes)
            if self.workers == 1:  # what would be judged again with more memory once alone has it at once
                self._memory.enter_context(blocks.more_memory(self._device.index))
        self._slots.fill(self.workers, cores=cores, uids=uids)
        self.device = self._device.name if self._device else environment.device_model()
        self.environment = environment.describe(server.facts, walls, self._device)
        if self._device is not None:
            blocks.has_cupy()  # before anybody has the device's turn: it compiles

    def _walls(self, server: ForkServer, core: int) -> list[str]:
        """The walls that can be put up here. Another user is one only if that user can read the installation."""
        last: object = "it cannot read the Python installation"
        for uid in (FIRST_UID, None) if os.geteuid() == 0 else (None,):
            try:
                probe = server.spawn(arena_bytes=1 << 20, core=core, uid=uid, memory_bytes=1 << 30, cpu_s=60)
            except FullDeviceError as error:
                raise MachineError(f"{error}; {FULL_REMEDY}") from error
            except WorkerError as error:  # another user may not use the device
                last = error
                continue
            probe.end()
            if probe.reads_installation:
                return [*server.facts["walls"], *probe.walls]
        raise MachineError(f"no worker starts behind the judge's walls: {last}")


def _let_go(error: BaseException | None) -> None:
    """Keep nothing alive of what was computed: whoever keeps the error, such as a server of calls, would keep that."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
