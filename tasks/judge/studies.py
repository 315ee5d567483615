"""The studies of the problems judged lately, shared by all cores."""

import contextlib
import ctypes
import threading
from collections.abc import Callable, Sequence

from tasks.judge import blocks
from tasks.judge.processes import WorkerProcess
from tasks.judge.program import Layout
from tasks.judge.reference import NoRoomError
from tasks.judge.study import BadProblemError, Study
from tasks.judge.wire import Arena
from tasks.problems.problem import Problem

MAX_KEPT, MAX_KEPT_ON_DEVICE = 8, 2
"""On a device each takes 3 GiB of its memory, or 11."""
TRIM_HEAP = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone


class Studies:
    """Makes studies, keeps some that nobody uses, and ends the others. Thread safe."""

    def __init__(self, *, max_kept: int, layouts: Sequence[Layout]) -> None:
        """Keep none yet.

        Args:
            layouts: of the arenas of studies; each is for what the one before has no room for.
        """
        self._max_kept = max_kept
        self._layouts = layouts
        self._lock = threading.Lock()
        self._making: dict[str, threading.Lock] = {}
        self._kept: dict[str, Study] = {}  # the least lately used first
        self._num_users: dict[Study, int] = {}
        self._bad: dict[str, str] = {}

    def take(self, problem: Problem, spawn: Callable[[Layout], WorkerProcess]) -> Study:
        """The problem's study, made if there is none; to be given back.

        Raises:
            BadProblemError: if the reference cannot serve as the truth.
        """
        key = problem.problem_hash
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            if key in self._bad:
                raise BadProblemError(self._bad[key])
            with self._lock:
                study = self._kept.pop(key, None)
            if study is None:
                study = self._made(problem, spawn)
            with self._lock:
                self._kept[key] = study
                self._num_users[study] = self._num_users.get(study, 0) + 1
        return study

    def give_back(self, study: Study) -> None:
        """Say that a taken study is no longer needed."""
        with self._lock:
            self._num_users[study] -= 1
            idle = [key for key, kept in self._kept.items() if not self._num_users[kept]]
            for key in idle[: max(0, len(self._kept) - self._max_kept)]:
                del self._kept[key]
        self._end_unneeded()

    def forget(self, study: Study) -> None:
        """Have the problem studied anew the next time, because this study no longer works."""
        with self._lock:
            self._kept = {key: kept for key, kept in self._kept.items() if kept is not study}

    def drop_all(self) -> None:
        """Keep nothing: studies end as soon as nobody uses them."""
        with self._lock:
            self._kept.clear()
        self._end_unneeded()

    def _end_unneeded(self) -> None:
        workers = self._forget_unneeded()
        for worker in workers:
            worker.end()
        if any(not isinstance(worker.arena, Arena) for worker in workers):
            blocks.free_unused()
        if workers and TRIM_HEAP is not None:
            TRIM_HEAP(0)  # or what held the arrays of hundreds of studies is kept for as long as anything lies above it

    def _forget_unneeded(self) -> list[WorkerProcess]:
        """The workers of studies that nobody uses nor keeps; nothing refers to those studies any more."""
        with self._lock:
            kept = set(self._kept.values())
            unneeded = [study for study, users in self._num_users.items() if not users and study not in kept]
            for study in unneeded:
                del self._num_users[study]
            return [study.worker for study in unneeded]

    def _made(self, problem: Problem, spawn: Callable[[Layout], WorkerProcess]) -> Study:
        *smaller, largest = self._layouts
        try:
            for layout in smaller:
                with contextlib.suppress(NoRoomError):
                    return _studied(problem, spawn, layout, fits_doubled=True)
            return _studied(problem, spawn, largest)
        except BadProblemError as error:
            self._bad[problem.problem_hash] = str(error)
            raise


def _studied(
    problem: Problem, spawn: Callable[[Layout], WorkerProcess], layout: Layout, *, fits_doubled: bool = False
) -> Study:
    worker = spawn(layout)
    try:
        return Study(problem, worker, layout, fits_doubled=fits_doubled)
    except BaseException:
        worker.end()
        raise
