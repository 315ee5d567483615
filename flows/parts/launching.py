"""Who does a stage's training: this process alone, or with processes it starts, watches and ends.

The stage's process is the first of the team and does everything but training as ever. The others end with it, whatever
ends it; when one of them ends early, so does the stage, and the next run goes on from the newest checkpoint.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from flows.engine import QUIET_TERMINAL_INTERVAL_S, say
from flows.following import kill, let_blocks_of_memory_grow, start
from flows.parts.gathering import ALL_HERE, CONNECT_S, GATHERING_POLL_S, TOKEN, Invitation, why_unreachable
from flows.parts.heartbeats import BEAT_S, LOST_S, Heartbeats
from tasks.errors import MachineError, ParamsError, PreemptedError, TrainingError
from tasks.params import EngineParams, Params

if TYPE_CHECKING:
    from torch.distributed import TCPStore

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

POLL_S = 0.5
NOTICE_S = 20.0
"""A process that has lost its team usually notices at once; one that hangs in a collective is ended after this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What the first process asks of the others: the call that is stored at the path."""

    path: Path
    threads: int


class Trainers:
    """Calls a training function in every process of the team."""

    def __init__(self, folder: Path, crew: "_Crew | None") -> None:
        self._folder = folder
        self._crew = crew

    def train(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """What the function returns here.

        The others call it with the same arguments, except that what can be called, such as a judge or a progress bar,
        is None for them.

        Raises:
            MachineError: if one of the others ended.
        """
        if self._crew is None:
            return function(*arguments, **named)
        import torch

        from tasks.training.team import team

        path = self._folder / "job.pt"
        shared = [_unless_called(value) for value in arguments]
        torch.save((function, shared, {name: _unless_called(value) for name, value in named.items()}), path)
        with self._crew.watched():
            team().agreed(Job(path=path, threads=torch.get_num_threads()))
            return function(*arguments, **named)


@contextmanager
def trainers(params: Params, *, folder: Path) -> Iterator[Trainers]:
    """Those who train, as the section engine says; the folder is for their logs and what they hand each other.

    Raises:
        ParamsError: if batches cannot be shared out evenly among the processes.
        MachineError: if the processes do not find each other.
    """
    _require_even(params)
    let_blocks_of_memory_grow()
    if not params.engine.is_distributed:
        from tasks.training.team import alone

        with alone(params.engine):
            yield Trainers(folder, None)
        return
    with _Crew(params.engine, folder=folder) as crew:
        yield Trainers(folder, crew)


def devices(params: Params) -> list[str]:
    """Where this machine's processes train and sample, by the names that judge.device has for them."""
    import torch

    return [f"cuda:{number}" for number in range(params.engine.processes)] if torch.cuda.is_available() else ["cpu"]


def require_apart(params: Params) -> None:
    """Refuse to judge on the device that samples meanwhile: candidates would be timed beside the policy.

    Raises:
        ParamsError: if that is what params ask for.
    """
    if words := _beside(params):
        raise ParamsError(words)


def say_unless_apart(params: Params) -> None:
    """Say that contrastive_rl would refuse this machine, before hours are spent on what it is to go on from.

    It may run on another one: one with a GPU samples there, and leaves the processor to the judge.
    """
    if words := _beside(params):
        say(f"contrastive_rl would refuse to run on this machine: {words}")


def _beside(params: Params) -> str:
    """Where the judge would have the device that samples, which; empty where it would not."""
    if params.contrastive_rl.groups_at_once is None:
        return ""
    ours = devices(params)
    is_here = params.judge.ray in (None, "local")
    if not is_here or params.judge.device not in (*ours, ours[0].partition(":")[0]):
        return ""
    return (
        f"contrastive_rl.groups_at_once: groups would be judged on {params.judge.device} while others are sampled "
        f"there; set it to null, or judge.device or judge.ray to devices of the judge's own"
    )


def _require_even(params: Params) -> None:
    size = params.engine.size
    for name, count in (
        ("sft.batch_size", params.sft.batch_size),
        ("self_supervised.batch_size", params.self_supervised.batch_size),
        ("contrastive_rl.prompts_per_step", params.contrastive_rl.prompts_per_step),
    ):
        if count % size:
            raise ParamsError(f"{name} is {count}, which {size} processes cannot share evenly: make it a multiple")


class _Crew:
    """The other processes, alive between enter and exit."""

    def __init__(self, engine: EngineParams, *, folder: Path) -> None:
        self._engine = engine
        self._folder = folder
        self._address = engine.address or "127.0.0.1:0"
        self._logs = {number: folder / f"process-{number}.log" for number in range(1, engine.processes)}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._lost: str | None = None
        self._heartbeats: Heartbeats | None = None
        self._is_gathered = False
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def __enter__(self) -> "_Crew":
        from tasks.training.team import join

        try:
            invitation = Invitation(folder=self._folder, engine=self._engine)
            with invitation.posted():
                store = self._opened(invitation.token)
                self._heartbeats = Heartbeats(store, number=0, watched=range(1, self._engine.size))
                for number, log in self._logs.items():
                    self._processes[number] = start(invitation, number=number, address=self._address, log=log)
                threading.Thread(target=self._watch, name="team", daemon=True).start()
                self._gather(self._heartbeats)
                store.set(ALL_HERE, "")
            with self.watched():
                join(self._engine, number=0, store=store)
        except BaseException:
            self._ended.set()
            if self._heartbeats:
                self._heartbeats.end()
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        from tasks.training.team import leave, team

        self._ended.set()
        if self._heartbeats:
            self._heartbeats.end()
        try:
            if kind is None:
                team().agreed(None)
                leave()
                for process in self._processes.values():
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(timeout=NOTICE_S)
        finally:
            self._end()

    def _opened(self, token: str) -> "TCPStore":
        """The store at which the team meets, with the token of those who are invited.

        Raises:
            MachineError: if others cannot find it at the address.
        """
        from torch.distributed import DistError, TCPStore

        from tasks.training.team import JOIN_S

        host, _, port = self._address.rpartition(":")
        patience = timedelta(seconds=CONNECT_S)
        try:
            # Not by the address: where that leads elsewhere, one would be looked for there, deaf to signals.
            store = TCPStore("127.0.0.1", int(port), None, True, wait_for_workers=False, timeout=patience)
        except DistError as error:
            raise MachineError(f"nobody can be waited for at {self._address} (engine.address): {error}") from error
        store.set(TOKEN, token)
        self._address = f"{host}:{store.port}"
        store.set_timeout(timedelta(seconds=JOIN_S))
        if (reason := why_unreachable(self._address)) is not None:
            raise MachineError(
                f"{self._address} does not lead to this machine ({reason}): set engine.address in params.yaml to the "
                f"machine that the stage runs on"
            )
        return store

    def _gather(self, heartbeats: Heartbeats) -> None:
        """Wait until all have come: in Python, which hears signals, where libraries would wait deaf to them.

        Raises:
            MachineError: if one has ended, or does not come in time.
        """
        from tasks.training.team import JOIN_S

        began = time.monotonic()
        is_said = False
        while absent := heartbeats.absent(silent_s=3 * BEAT_S):
            if (lost := self._look(silent_s=LOST_S)) is not None:
                raise MachineError(lost)
            waited_s = time.monotonic() - began
            who, remedy = self._missing(absent)
            if waited_s > JOIN_S:
                raise MachineError(
                    f"{who} did not come within {JOIN_S:.0f} s: {remedy}; then run the same command again"
                )
            if waited_s > QUIET_TERMINAL_INTERVAL_S and not is_said:
                is_said = True
                say(f"waiting for {who}, {JOIN_S:.0f} s at most: {remedy}")
            time.sleep(GATHERING_POLL_S)
        self._is_gathered = True

    def _missing(self, absent: Sequence[int]) -> tuple[str, str]:
        """Who has not come, and what helps."""
        nodes = sorted({number // self._engine.processes for number in absent} - {0})
        if not nodes:
            return f"training process {absent[0]} of {self._engine.size}", f"see {self._logs[absent[0]]}"
        return (
            f"node {' and node '.join(map(str, nodes))}",
            f"there, `python -m flows.following --node {nodes[0]}` has to run in this folder, on a disk that "
            f"the machines share, and to reach {self._address}",
        )

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Say which process ended where otherwise a library would say that a connection was lost."""
        try:
            yield
        except (PreemptedError, TrainingError):
            raise  # said by the training itself, in all processes
        except Exception as error:
            # A process of this machine is seen to end; of one elsewhere, some heartbeats have to be missing.
            silent_s = 3 * BEAT_S if self._engine.nodes > 1 else LOST_S
            deadline = time.monotonic() + 10 * POLL_S + (silent_s if self._engine.nodes > 1 else 0)
            while (lost := self._look(silent_s=silent_s)) is None and time.monotonic() < deadline:
                time.sleep(POLL_S)
            if lost is not None:
                raise MachineError(lost) from error
            raise

    def _watch(self) -> None:
        while not self._ended.wait(POLL_S):
            if (lost := self._look(silent_s=LOST_S)) is not None:
                # The others cannot go on either, and may hang in a collective until its time is over. So may we.
                self._end()
                if not self._ended.wait(NOTICE_S):
                    say(lost)
                    os.kill(os.getpid(), signal.SIGKILL)
                return

    def _look(self, *, silent_s: float) -> str | None:
        """How the first process that was lost ended, or that nothing was heard of it for so long; None if none was."""
        with self._lock:
            for number, process in self._processes.items():
                if self._lost is None and (status := process.poll()) is not None:
                    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
                    self._lost = (
                        f"training process {number} of {self._engine.size} {how} (see {self._logs[number]}); the same "
                        f"command goes on from the newest checkpoint"
                    )
            silent = self._heartbeats.lost(silent_s=silent_s) if self._heartbeats and self._is_gathered else None
            if self._lost is None and silent is not None:
                self._lost = (
                    f"training process {silent} of {self._engine.size}, on node {silent // self._engine.processes}, "
                    f"has not been heard of for {silent_s:.0f} s: its machine or the network is gone, or it hangs; the "
                    f"same command goes on from the newest checkpoint"
                )
            return self._lost

    def _end(self) -> None:
        kill(self._processes.values())


def _unless_called(value: Any) -> Any:
    return None if callable(value) else value
