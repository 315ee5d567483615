"""A panel of judges: one for each device of a model, in processes that Ray starts, asked as if they were one.

Ray finds the devices, starts the processes, carries questions and answers, and notices who dies
(flows/panels/seats.py). Whoever dies takes no verdict along: the candidates go to the others.
"""

import time
import uuid
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from flows.panels.cluster import Place
from flows.panels.seats import LOST_IN_A_ROW, Seat, Seats, in_words
from tasks.errors import MachineError, WorkerError
from tasks.judge.batch import changed
from tasks.judge.long import OnProgress
from tasks.judge.timing import protocol_of
from tasks.judge.verdict import Verdict
from tasks.params import JudgeParams
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate

LOOK_S = 1.0


class Panel:
    """Judges of one model of device. Thread safe.

    Args:
        params: of each judge; params.workers candidates are judged at once on each device.
        places: where judges are to sit.

    Raises:
        MachineError: when entered while no judge can be opened.
    """

    def __init__(self, params: JudgeParams, places: Sequence[Place]) -> None:
        self._params = params
        # A Ray worker sees one GPU only, whichever that is.
        one = changed(params, ray=None, accelerators=(), device="cpu" if params.device == "cpu" else "cuda:0")
        self._seats = Seats(one, places)
        self._limit_s = 600.0 + 10 * params.timeout_s + (3 * params.long.window_s if params.tier == "long" else 0.0)

    def __enter__(self) -> Self:
        self._seats.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._seats.close()

    @property
    def device(self) -> str:
        """The model of the judges' devices."""
        return self._seats.device

    @property
    def environment(self) -> Mapping[str, str]:
        """That of the first judge to open; all others agree in what timings depend on."""
        return self._seats.environment

    @property
    def protocol(self) -> str:
        """The version of the way of judging."""
        return protocol_of(device=self._params.device, tier=self._params.tier)

    @property
    def workers(self) -> int:
        """How many candidates are judged at once when all judges are there."""
        return self._seats.workers

    def judge(
        self,
        problem: Problem,
        candidate: Candidate,
        *,
        seed: int,
        best_speedup: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Verdict:
        """What one candidate is worth, from whoever is free; as Judge.judge.

        Raises:
            WorkerError: if the judges' own processes failed; trying again may help.
            MachineError: if no judge is left, or the panel was closed.
        """
        for _ in range(LOST_IN_A_ROW):
            with self._seats.taken(problem.problem_hash) as seat:
                ticket = uuid.uuid4().hex
                try:
                    promise = seat.actor.judge.remote(ticket, problem, candidate, seed=seed, best_speedup=best_speedup)
                    verdict = self._awaited(seat, promise, ticket, on_progress)
                except _LostError as lost:
                    self._seats.lose(seat, str(lost), again=lost.again)
                else:
                    seat.num_lost = 0
                    return verdict
        raise WorkerError(f"{LOST_IN_A_ROW} judges in a row were lost over one candidate: {self._seats.mishap}")

    def _awaited(self, seat: Seat, promise: Any, ticket: str, on_progress: OnProgress | None) -> Verdict:
        import ray
        from ray.exceptions import GetTimeoutError, RayError, RayTaskError

        deadline = time.monotonic() + self._limit_s
        while True:
            try:
                verdict: Verdict = ray.get(promise, timeout=LOOK_S)
                return verdict
            except GetTimeoutError:
                if time.monotonic() > deadline:
                    raise _LostError(f"no verdict within {self._limit_s:.0f} s") from None
            except RayTaskError as error:
                if isinstance(error.cause, MachineError):
                    raise _LostError(str(error.cause), again=False) from None
                raise error.cause from None
            except RayError as error:
                raise _LostError(in_words(error)) from None
            self._seats.require_open()
            if on_progress is not None:
                self._pass_on(seat, ticket, on_progress)

    def _pass_on(self, seat: Seat, ticket: str, on_progress: OnProgress) -> None:
        import ray
        from ray.exceptions import RayError

        try:
            heard = ray.get(seat.actor.heard.remote(ticket), timeout=LOOK_S)
        except RayError:
            return  # whoever waits for the verdict finds out what that means
        if heard is None:
            return
        try:
            on_progress(*heard)
        except BaseException:  # it ends the judgement, which only the end of its process does
            self._seats.lose(seat, "a judgement was called off", again=True)
            raise


class _LostError(Exception):
    """A judge has gone, for the reason given; whether another one at its place may do better."""

    def __init__(self, why: str, *, again: bool = True) -> None:
        super().__init__(why)
        self.again = again
