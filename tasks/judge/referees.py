"""Many candidates judged at once on one machine by several processes, as if by one judge.

The threads of one referee's process stop each other whenever Python runs, up to a fifth of a millisecond a time. With
four of them that is noise; with twelve the device waits for its referee, and so does every clock.
"""

import contextlib
import math
import multiprocessing
import os
import secrets
import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing.managers import BaseManager
from types import TracebackType
from typing import Any, Self

from tasks.errors import WorkerError
from tasks.judge.any_judge import AnyJudge
from tasks.judge.judge import Judge
from tasks.judge.long import OnProgress
from tasks.judge.timing import protocol_of
from tasks.judge.verdict import Verdict
from tasks.params import JudgeParams
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate

MAX_THREADS = 4
"""Candidates that one process measures at once. Those that it has in hand besides mostly wait."""
CLOSE_S = 20.0


def local_judge(params: JudgeParams, *, share: float = 1.0) -> contextlib.AbstractContextManager[AnyJudge]:
    """What measures params.workers candidates at once on one device of this machine; to be entered."""
    return (Judge if params.workers <= MAX_THREADS else Referees)(params, share=share)


class Referees:
    """What a Judge is, in several processes; each has at most MAX_THREADS of params.workers.

    Args:
        share: as a judge's, of all these together.

    Raises:
        MachineError: when entered on a machine that cannot judge.
    """

    def __init__(self, params: JudgeParams, *, share: float = 1.0) -> None:
        num_processes = math.ceil(params.workers / MAX_THREADS)
        seats = [params.workers // num_processes] * num_processes
        for index in range(params.workers % num_processes):
            seats[index] += 1
        self._params = params
        self._referees = [_Referee(replace(params, workers=workers), share / num_processes) for workers in seats]  # type: ignore[type-var]
        self._changed = threading.Condition()
        self.workers = params.workers
        self.device = ""
        self.environment: Mapping[str, str] = {}

    def __enter__(self) -> Self:
        try:
            with ThreadPoolExecutor(len(self._referees)) as pool:
                found = list(pool.map(_Referee.open, self._referees))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.device, self.environment = found[0].device, found[0].environment
        for referee, about in zip(self._referees, found, strict=True):
            referee.in_hand = about.workers
        self.workers = sum(about.workers for about in found)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ThreadPoolExecutor(len(self._referees)) as pool:
            list(pool.map(_Referee.close, self._referees))

    @property
    def protocol(self) -> str:
        """As a judge's."""
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
        """What one candidate is worth, as Judge.judge says it; of progress only the beginning and the end are told."""
        with self._chosen(problem.problem_hash) as referee:
            if on_progress:
                on_progress(0.0, "judging")
            verdict = referee.judge(problem, candidate, seed=seed, best_speedup=best_speedup)
            if on_progress:
                on_progress(1.0, verdict.status.value)
            return verdict

    @contextlib.contextmanager
    def _chosen(self, problem_hash: str) -> Iterator["_Referee"]:
        """One with time: with a seat free if there is one, and rather the one that has studied this problem lately."""
        with self._changed:
            while not (free := [referee for referee in self._referees if referee.num_busy < referee.in_hand]):
                self._changed.wait()
            referee = min(
                free,
                key=lambda each: (each.num_busy >= each.num_seats, each.last_problem != problem_hash, each.num_busy),
            )
            referee.last_problem = problem_hash
            referee.num_busy += 1
        try:
            yield referee
        finally:
            with self._changed:
                referee.num_busy -= 1
                self._changed.notify()


class _Referee:
    """A judge in a process of its own, which ends with this one."""

    def __init__(self, params: JudgeParams, share: float) -> None:
        self._params = params
        self._share = share
        self._changing = threading.Lock()
        self._running: _Running | None = None
        self.num_seats = self.in_hand = params.workers
        self.num_busy = 0
        self.last_problem = ""

    def open(self) -> "_About":
        """Start it where it does not run; what its judge says of itself."""
        return self._started().about

    def judge(self, problem: Problem, candidate: Candidate, *, seed: int, best_speedup: float | None) -> Verdict:
        running = self._started()
        try:
            verdict: Verdict = running.bench.judge(problem, candidate, seed=seed, best_speedup=best_speedup)
            return verdict
        except (EOFError, ConnectionError) as error:
            self._give_up(running)
            raise WorkerError("a referee's process has ended") from error

    def close(self) -> None:
        with self._changing:
            running, self._running = self._running, None
        if running is not None:
            closing = threading.Thread(target=_closed, args=(running.bench,), daemon=True)
            closing.start()
            closing.join(CLOSE_S)
            running.manager.shutdown()

    def _started(self) -> "_Running":
        with self._changing:
            if self._running is None:
                # A name without a file, which the kernel forgets when the process ends.
                address = f"\0cuda-l1-referee-{secrets.token_hex(16)}"
                manager = _Manager(address, ctx=multiprocessing.get_context("spawn"))
                try:
                    manager.start(initializer=_end_with_parent)
                    bench: Any = manager.Bench(self._params, self._share)  # type: ignore[attr-defined]
                    self._running = _Running(manager=manager, bench=bench, about=bench.open())
                except (EOFError, ConnectionError) as error:
                    raise WorkerError("a referee's process ended when it started") from error
                finally:
                    if self._running is None:
                        _shut_down(manager)
            return self._running

    def _give_up(self, dead: "_Running") -> None:
        """Have another process started for the next question; whoever comes second finds that one."""
        with self._changing:
            if self._running is not dead:
                return
            self._running = None
        dead.manager.shutdown()


class _Bench:
    """The judge within its process."""

    def __init__(self, params: JudgeParams, share: float) -> None:
        self._judge = Judge(params, share=share)

    def open(self) -> "_About":
        judge = self._judge.__enter__()
        return _About(device=judge.device, environment=dict(judge.environment), workers=judge.workers)

    def judge(self, problem: Problem, candidate: Candidate, *, seed: int, best_speedup: float | None) -> Verdict:
        return self._judge.judge(problem, candidate, seed=seed, best_speedup=best_speedup)

    def close(self) -> None:
        self._judge.__exit__(None, None, None)


class _Manager(BaseManager):
    """Python's own way of calling what is in another process: a thread there for each that calls here."""


_Manager.register("Bench", _Bench)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Running:
    """A process with an open judge."""

    manager: _Manager
    bench: Any
    about: "_About"


@dataclass(frozen=True, kw_only=True, slots=True)
class _About:
    """What an open judge says of itself."""

    device: str
    environment: dict[str, str]
    workers: int


def _closed(bench: Any) -> None:
    with contextlib.suppress(EOFError, ConnectionError):
        bench.close()


def _shut_down(manager: _Manager) -> None:
    with contextlib.suppress(AttributeError):  # it has not started
        manager.shutdown()


def _end_with_parent() -> None:
    """A referee whose caller has been killed would judge on for nobody."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="parent", daemon=True).start()
