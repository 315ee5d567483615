"""The processes of a team beside its first: they wait for the first's work and do their part of it.

The stage's own process starts those of its machine. On the other machines of engine.nodes a person or a scheduler
starts this command once, in the same folder on a disk they share. It follows one stage after the other, until it is
ended:

    python -m flows.following --node 1
"""

import argparse
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from flows.ancestors import GRACE_S, end_with_ancestors
from flows.engine import say
from flows.parts.gathering import (
    ALL_HERE,
    CONNECT_S,
    FOLDER,
    GATHERING_POLL_S,
    TOKEN,
    Invitation,
    why_unreachable,
)
from flows.parts.heartbeats import BEAT_S, LOST_S, Heartbeats
from tasks.errors import CudaL1Error, MachineError, PreemptedError
from tasks.judge.walls.system import PR_SET_PDEATHSIG, prctl
from tasks.params import EngineParams, load_params

if TYPE_CHECKING:
    from tasks.training.team import Team

POLL_S = 0.5
LOST = 75
"""Exit status of a process whose stage is gone: another run of the stage may be followed."""
NOT_INVITED = 76
"""Exit status of a process that is answered by another stage than the one that invited it."""


def let_blocks_of_memory_grow() -> None:
    """Before CUDA is used: a GPU's blocks of memory grow in place, in this process and those it starts.

    Packed batches differ in length each time, and each new length would leave a block that the next does not fit into:
    100.7 GiB were reserved for 49.2 in use (docs/results/train-h200.md). Who has set PyTorch's allocator keeps that.
    """
    if "PYTORCH_CUDA_ALLOC_CONF" not in os.environ:
        os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")


def start(invitation: Invitation, *, number: int, address: str, log: Path) -> subprocess.Popen[bytes]:
    """A process that follows the first of the team, which is at the address, and ends with whoever started it."""
    engine = asdict(invitation.engine)  # type: ignore[call-overload]
    orders = {"number": number, "address": address, "token": invitation.token, "parent": os.getpid(), "engine": engine}
    with log.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "flows.following", "--orders", json.dumps(orders)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m flows.following", description="train with another machine's stages, one after the other"
    )
    parser.add_argument("--node", type=int, help="which of engine.nodes this is; the stages themselves run on node 0")
    parser.add_argument("--orders", type=json.loads, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.orders is None:
        try:
            _require_node(parser, load_params().engine, chosen.node)
            signal.signal(signal.SIGTERM, _ask_to_end)
            _follow_stages(chosen.node)
        except PreemptedError as error:
            say(f"node {chosen.node}: {error}")
            sys.exit(143)
        except KeyboardInterrupt:
            say(f"node {chosen.node}: interrupted")
            sys.exit(130)
        except CudaL1Error as error:
            sys.exit(f"{type(error).__name__}: {error}")
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != chosen.orders["parent"]:
        sys.exit("the process that wanted to be followed is gone")
    engine = EngineParams(**chosen.orders["engine"])
    _follow(engine, **{name: chosen.orders[name] for name in ("number", "address", "token")})


def _follow(engine: EngineParams, *, number: int, address: str, token: str) -> None:
    """Do what the first process says until it says that there is no more."""
    let_blocks_of_memory_grow()
    from torch.distributed import DistError, TCPStore

    from tasks.training.team import JOIN_S, join, leave

    host, _, port = address.rpartition(":")
    try:
        patience = timedelta(seconds=CONNECT_S)
        store = TCPStore(host, int(port), engine.size, False, timeout=patience, wait_for_workers=False)
        is_invited = store.get(TOKEN) == token.encode()
    except DistError as error:
        say(f"the stage is gone from {address}: {error}")
        sys.exit(LOST)
    if not is_invited:
        say(f"another stage answers at {address}: it has an invitation of its own, in the folder where it runs")
        sys.exit(NOT_INVITED)
    store.set_timeout(timedelta(seconds=JOIN_S))
    heartbeats = Heartbeats(store, number=number, watched=[0])
    threading.Thread(target=_end_without_first, args=(heartbeats,), name="team", daemon=True).start()
    try:
        while not store.check([ALL_HERE]):
            time.sleep(GATHERING_POLL_S)
        _work(join(engine, number=number, store=store))
        heartbeats.end()
        leave()
    except PreemptedError as error:
        say(str(error))
    except CudaL1Error:
        raise  # said by the training itself, in all processes
    except RuntimeError as error:
        # The stage sees a process of its own machine end. One elsewhere waits: what broke may be the team.
        if number < engine.processes or not _falls_silent(heartbeats):
            raise
        say(f"the team is lost: {error}")
        os._exit(LOST)


def _work(team: "Team") -> None:
    import torch

    while (job := team.agreed(None)) is not None:
        torch.set_num_threads(job.threads)
        # Mapped, not read: what all processes of a machine start from is in its memory once.
        function, arguments, named = torch.load(job.path, map_location="cpu", mmap=True, weights_only=False)
        function(*arguments, **named)


def _falls_silent(heartbeats: Heartbeats) -> bool:
    """Whether the first process ends, as it does when it notices that it has lost any of the others."""
    until = time.monotonic() + LOST_S + 8 * BEAT_S
    while (is_there := heartbeats.lost(silent_s=3 * BEAT_S) is None) and time.monotonic() < until:
        time.sleep(POLL_S)
    return not is_there


def _end_without_first(heartbeats: Heartbeats) -> None:
    """End this process once the first is silent: it could wait for words about the work for days."""
    while heartbeats.lost(silent_s=LOST_S) is None:
        time.sleep(BEAT_S)
        if heartbeats.has_ended:
            return
    say(f"training process 0, on node 0, has not been heard of for {LOST_S:.0f} s: this one cannot go on without it")
    os._exit(LOST)


def _require_node(parser: argparse.ArgumentParser, engine: EngineParams, node: int | None) -> None:
    """End the command unless the node is one of those that follow."""
    if engine.nodes == 1:
        parser.error("engine.nodes is 1 in params.yaml, so no other machine trains; set it and engine.address there")
    if node is None or not 0 < node < engine.nodes:
        parser.error(f"--node must be 1 to {engine.nodes - 1}, not {node}; the stage itself runs on node 0")


def _ask_to_end(number: int, frame: FrameType | None) -> NoReturn:
    raise PreemptedError("the machine asked this process to end (SIGTERM); the same command follows again")


def _follow_stages(node: int) -> NoReturn:
    end_with_ancestors()
    stale = None
    with _only_one(node):
        while True:
            invitation = _awaited(node, stale)
            say(f"node {node}: following {invitation.folder}")
            if not _follow_stage(invitation, node):
                stale = invitation


@contextmanager
def _only_one(node: int) -> Iterator[None]:
    """Hold the node's lock: with two of one number, both would be waited for and neither heard."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"node-{node}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MachineError(
                f"node {node} is followed by another command already; give each machine a number of its own"
            ) from None
        yield


def _awaited(node: int, stale: Invitation | None) -> Invitation:
    """What the next stage that trains says of itself; until there is one, what is waited for, whenever that changes.

    Args:
        stale: what a stage has left that is gone, and whose address is another's now.
    """
    said = None
    while True:
        words = f"waiting in {Path.cwd()} for a stage that trains, until this is ended by Ctrl-C or SIGTERM"
        if (invitation := Invitation.read()) and invitation == stale:
            words += (
                f"; {invitation.folder} does not answer at {invitation.engine.address}, where another stage does: run "
                f"this command in the folder where that one runs, or run {invitation.folder} again"
            )
        elif invitation:
            assert invitation.engine.address is not None, "several nodes have one"
            reason = why_unreachable(invitation.engine.address)
            if reason is None:
                invitation.require_fit(node)
                return invitation
            words += (
                f"; nobody answers at {invitation.engine.address}, where {invitation.folder} has waited ({reason}): "
                f"unless it was ended, change engine.address, or let this machine reach it"
            )
        if words != said:
            say(f"node {node}: {words}")
            said = words
        time.sleep(POLL_S)


def _follow_stage(invitation: Invitation, node: int) -> bool:
    """Do this machine's part of a stage to its end, or until the stage is lost.

    Returns:
        Whether it was this stage that answered at its address.

    Raises:
        MachineError: if a process fails, so that another run of the stage would fail too.
    """
    engine, stage = invitation.engine, invitation.folder
    assert engine.address is not None, "several nodes have one"
    processes: dict[int, subprocess.Popen[bytes]] = {}
    try:
        for number in range(node * engine.processes, (node + 1) * engine.processes):
            log = FOLDER / f"process-{number}.log"
            processes[number] = start(invitation, number=number, address=engine.address, log=log)
        while None in (polled := [process.poll() for process in processes.values()]) and not any(polled):
            time.sleep(POLL_S)
    except (PreemptedError, KeyboardInterrupt):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which some schedulers send twice; Ctrl-C cuts this short
        say(f"node {node}: ending {stage}, with a checkpoint if it trains; {GRACE_S:.0f} s at most")
        _ask(processes.values())
        raise
    finally:
        kill(processes.values())
    expected = {None, 0, LOST, NOT_INVITED}  # None is of the others, which were killed
    if not expected.issuperset(polled):
        statuses = dict(zip(processes, polled, strict=True))
        raise MachineError(
            f"processes of node {node} failed, see {FOLDER}: exit statuses {statuses}; mend that, start this again, "
            f"and run the stage again"
        )
    if NOT_INVITED in polled:
        return False
    if any(polled):
        say(f"node {node}: {stage} is lost, see {FOLDER}; once it runs again, it goes on from its newest checkpoint")
    else:
        say(f"node {node}: {stage} has ended")
    return True


def _ask(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """Ask them to end, and give them the time for a checkpoint."""
    for process in processes:
        process.terminate()
    until = time.monotonic() + GRACE_S
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(until - time.monotonic())


def kill(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """End those that are there at once, and what they have started."""
    for process in processes:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


if __name__ == "__main__":
    main()
