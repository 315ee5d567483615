"""The seats of a panel: processes that Ray has started, each with a judge of its own, lent to who has a question.

A seat that dies is given up, and Ray is asked for another, which is taken as soon as there is a place for it: at once
where only the process died, or when a machine comes back.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from flows.engine import say
from flows.panels.chamber import Chamber, Sitting, code_hash
from flows.panels.cluster import Place
from tasks.errors import MachineError, RetryableError
from tasks.judge.batch import changed
from tasks.params import JudgeParams

LOOK_S = 1.0
OPEN_S = 180.0
"""For one judge to open: others may still hold the devices."""
GRACE_S = 30.0
"""For the others, when one has opened: Ray takes half a minute to notice that a machine has died."""
RETURN_S = 300.0
"""Without any living judge."""
CLOSE_S = 10.0
LOST_IN_A_ROW = 3  # at one place, or over one candidate
MUST_AGREE = ("torch", "python", "driver", "machine", "walls")
"""Parts of the environment that timings and trust depend on; the others are told in each verdict."""
SIDE_DOORS = 2  # threads of a chamber for questions beside judgements
REMEMBERED = 4  # problems


@dataclass(eq=False, kw_only=True, slots=True)
class Seat:
    """One judge, in a process of its own."""

    place: Place
    actor: Any
    opening: Any
    """Ray's promise of its sitting."""
    num_lost: int
    """Judges lost at this place since the last verdict."""
    sitting: Sitting | None = None
    num_busy: int = 0
    problems: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    """Hashes of those judged lately, which it need not study again."""


class Seats:
    """Thread safe.

    Args:
        params: of each judge, but for the workers, which depend on the place.
        places: where judges are to sit.
    """

    def __init__(self, params: JudgeParams, places: Sequence[Place]) -> None:
        self._params = params
        self._places = places
        self._code = code_hash()
        self._change = threading.Condition()
        self._seats: list[Seat] = []
        self._is_closed = False
        self._usher = threading.Thread(target=self._seat_newcomers, name="usher", daemon=True)
        self.mishap = ""
        """How the last judge was lost, in words."""
        self.device = ""
        self.environment: Mapping[str, str] = {}

    def open(self) -> None:
        """Wait until all judges have opened that do so in time; the others take their seats later.

        Raises:
            MachineError: if none has.
        """
        try:
            for place in self._places:
                self._start(place)
            self._usher.start()
            with self._change:
                self._change.wait_for(lambda: self.device or not self._seats, timeout=OPEN_S)
                self._change.wait_for(lambda: all(seat.sitting for seat in self._seats), timeout=GRACE_S)
                num_open = sum(seat.sitting is not None for seat in self._seats)
            if not num_open:
                raise MachineError(self.mishap or f"no device became free within {OPEN_S:.0f} s; others may hold them")
            if num_open < len(self._places):
                say(f"{num_open} of {len(self._places)} judges have opened; the work begins with those")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all judges and what they started."""
        import ray

        with self._change:
            self._is_closed = True
            seats, self._seats = self._seats, []
            self._change.notify_all()
        with suppress(Exception):  # who does not close in time is killed, and Ray may have gone before us
            closing = [seat.actor.close.remote() for seat in seats if seat.sitting]
            ray.wait(closing, num_returns=len(closing), timeout=CLOSE_S)
        for seat in seats:
            _kill(seat)
        if self._usher.is_alive():
            self._usher.join(CLOSE_S)

    @property
    def workers(self) -> int:
        """How many candidates are judged at once when all judges are there."""
        return sum(place.workers for place in self._places)

    @contextmanager
    def taken(self, problem: str) -> Iterator[Seat]:
        """A judge with time for a candidate, one that knows the problem if there is a choice.

        Raises:
            MachineError: if no judge is left, or the seats are closed.
        """
        seat = self._free_seat(problem)
        try:
            yield seat
        finally:
            with self._change:
                seat.num_busy -= 1
                self._change.notify_all()

    def require_open(self) -> None:
        """Raise MachineError when the seats are closed: judges that were sent home answer nobody."""
        if self._is_closed:
            raise MachineError("the panel of judges was closed")

    def lose(self, seat: Seat, why: str, *, again: bool) -> None:
        """Give a judge up.

        Args:
            again: whether another one at its place may do better.
        """
        with self._change:
            if seat not in self._seats:
                return
            self._seats.remove(seat)
            where = f"the judge on {seat.sitting.machine}" if seat.sitting else "a judge that was to open"
            self.mishap = f"{where} is lost: {why}"
            if again and seat.num_lost + 1 < LOST_IN_A_ROW:  # before others look, who would find nobody left
                self._start(seat.place, num_lost=seat.num_lost + 1)
            self._change.notify_all()
        say(f"{self.mishap}; its candidates go to others")
        _kill(seat)

    def _free_seat(self, problem: str) -> Seat:
        last_seen = time.monotonic()
        with self._change:
            while True:
                self.require_open()
                living = [seat for seat in self._seats if seat.sitting]
                if living:
                    last_seen = time.monotonic()
                elif not self._seats or time.monotonic() - last_seen > RETURN_S:
                    raise MachineError(f"no judge is left; the last: {self.mishap}")
                free = [seat for seat in living if seat.num_busy < seat.place.workers]
                if free:
                    seat = max(free, key=lambda seat: (problem in seat.problems, -seat.num_busy))
                    seat.num_busy += 1
                    if problem not in seat.problems:
                        seat.problems.append(problem)
                    return seat
                self._change.wait(LOOK_S)

    def _start(self, place: Place, *, num_lost: int = 0) -> None:
        """Have Ray start a judge as soon as there is a place for it."""
        import ray

        if self._is_closed:
            return
        asked = {
            "num_cpus": place.num_cpus,
            "num_gpus": place.num_gpus,
            "accelerator_type": place.accelerator,
            "max_restarts": 0,  # another one is started instead, which no question reaches before it has opened
            "max_concurrency": place.workers + SIDE_DOORS,
            "scheduling_strategy": "SPREAD",
        }
        actor: Any = ray.remote(Chamber).options(**asked).remote()
        opening = actor.open.remote(changed(self._params, workers=place.workers), self._code)
        seat = Seat(place=place, actor=actor, opening=opening, num_lost=num_lost)
        with self._change:
            if not self._is_closed:
                self._seats.append(seat)
                self._change.notify_all()
                return
        _kill(seat)

    def _seat_newcomers(self) -> None:
        """Let judges take their seats when they have opened, until all is over."""
        import ray

        while not self._is_closed:
            with self._change:
                opening = {seat.opening: seat for seat in self._seats if seat.sitting is None}
                if not opening:
                    self._change.wait(LOOK_S)
                    continue
            for promise in ray.wait(list(opening), timeout=LOOK_S)[0]:
                self._seat(opening[promise])

    def _seat(self, seat: Seat) -> None:
        import ray
        from ray.exceptions import RayError, RayTaskError

        try:
            sitting: Sitting = ray.get(seat.opening, timeout=CLOSE_S)
            self._require_agreement(sitting)
        except RayTaskError as error:
            self.lose(seat, str(error.cause), again=isinstance(error.cause, RetryableError))
        except MachineError as error:
            self.lose(seat, str(error), again=False)
        except RayError as error:
            self.lose(seat, in_words(error), again=True)
        else:
            with self._change:
                self.device, self.environment = sitting.device, self.environment or sitting.environment
                seat.sitting = sitting
                self._change.notify_all()

    def _require_agreement(self, sitting: Sitting) -> None:
        if not self.device:
            return
        ours = {"device": self.device, **self.environment}
        theirs = {"device": sitting.device, **sitting.environment}
        for name in ("device", *MUST_AGREE):
            if ours.get(name) != theirs.get(name):
                raise MachineError(f"its {name} is {theirs.get(name)}, not {ours.get(name)} as elsewhere")


def in_words(error: Exception) -> str:
    """What Ray says, without its traces and its advice on logs."""
    lines = [line for line in str(error).split("\n") if line.strip()]
    if missing := [line for line in lines if line.startswith("ModuleNotFoundError")]:
        return f"{missing[-1]}; install this package on every machine of the cluster (docs/clusters.md)"
    return lines[0] if lines else type(error).__name__


def _kill(seat: Seat) -> None:
    import ray

    with suppress(Exception):  # it may be gone, and Ray with it
        ray.kill(seat.actor)
