"""The processes of a team beside its first: they wait for the first's work and do their part of it.

The stage's own process starts those of its machine. On the other machines of engine.nodes a person or a scheduler
starts them, in the same folder on a disk they share and with the same params.yaml:

    python -m flows.following --node 1
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from flows.ancestors import end_with_ancestors
from flows.engine import say
from flows.parts.heartbeats import BEAT_S, LOST_S, Heartbeats
from tasks.errors import CudaL1Error, MachineError, PreemptedError
from tasks.judge.walls.system import PR_SET_PDEATHSIG, prctl
from tasks.params import EngineParams, load_params


def let_blocks_of_memory_grow() -> None:
    """Before CUDA is used: a GPU's blocks of memory grow in place, in this process and those it starts.

    Packed batches differ in length each time, and each new length would leave a block that the next does not fit into:
    100.7 GiB were reserved for 49.2 in use (docs/results/train-h200.md). Who has set PyTorch's allocator keeps that.
    """
    if "PYTORCH_CUDA_ALLOC_CONF" not in os.environ:
        os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")


def start(engine: EngineParams, *, number: int, address: str, log: Path) -> subprocess.Popen[bytes]:
    """A process that follows the first of the team, which is at the address, and ends with whoever started it."""
    orders = {"number": number, "address": address, "parent": os.getpid(), "engine": asdict(engine)}  # type: ignore[call-overload]
    with log.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "flows.following", "--orders", json.dumps(orders)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flows.following", description="train with another machine's stage")
    parser.add_argument("--node", type=int, help="which of engine.nodes this is; the stage itself runs on node 0")
    parser.add_argument("--orders", type=json.loads, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.orders is None:
        try:
            engine = load_params().engine
            _require_node(parser, engine, chosen.node)
            _run_node(engine, chosen.node)
        except CudaL1Error as error:
            sys.exit(f"{type(error).__name__}: {error}")
        return
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != chosen.orders["parent"]:
        sys.exit("the process that wanted to be followed is gone")
    engine = EngineParams(**chosen.orders["engine"])
    _follow(engine, number=chosen.orders["number"], address=chosen.orders["address"])


def _follow(engine: EngineParams, *, number: int, address: str) -> None:
    """Do what the first process says until it says that there is no more."""
    let_blocks_of_memory_grow()
    import torch
    from torch.distributed import TCPStore

    from tasks.training.team import JOIN_S, join, leave

    host, _, port = address.rpartition(":")
    patience = timedelta(seconds=JOIN_S)
    store = TCPStore(host, int(port), engine.size, False, timeout=patience, wait_for_workers=False)
    team = join(engine, number=number, store=store)
    heartbeats = Heartbeats(store, number=number, watched=[0])
    threading.Thread(target=_end_without_first, args=(heartbeats,), name="team", daemon=True).start()
    while (job := team.agreed(None)) is not None:
        torch.set_num_threads(job.threads)
        # Mapped, not read: what all processes of a machine start from is in its memory once.
        function, arguments, named = torch.load(job.path, map_location="cpu", mmap=True, weights_only=False)
        try:
            function(*arguments, **named)
        except PreemptedError as error:
            say(str(error))
            return
    heartbeats.end()
    leave()


def _end_without_first(heartbeats: Heartbeats) -> None:
    """End this process once the first is silent: it could wait for words about the work for days."""
    while heartbeats.lost(silent_s=LOST_S) is None:
        time.sleep(BEAT_S)
        if heartbeats.has_ended:
            return
    say(f"training process 0, on node 0, has not been heard of for {LOST_S:.0f} s: this one cannot go on without it")
    os._exit(1)


def _require_node(parser: argparse.ArgumentParser, engine: EngineParams, node: int | None) -> None:
    """End the command unless the node is one of those that follow."""
    if engine.nodes == 1:
        parser.error("engine.nodes is 1 in params.yaml, so no other machine trains; set it and engine.address there")
    if node is None or not 0 < node < engine.nodes:
        parser.error(f"--node must be 1 to {engine.nodes - 1}, not {node}; the stage itself runs on node 0")


def _run_node(engine: EngineParams, node: int) -> None:
    end_with_ancestors()
    assert engine.address is not None, "several nodes have one"
    logs = Path("work/following")
    logs.mkdir(parents=True, exist_ok=True)
    processes = {}
    with ExitStack() as stack:
        for number in range(node * engine.processes, (node + 1) * engine.processes):
            log = logs / f"process-{number}.log"
            process = stack.enter_context(start(engine, number=number, address=engine.address, log=log))
            processes[number] = process
    statuses = {number: process.returncode for number, process in processes.items()}
    if any(statuses.values()):
        raise MachineError(f"processes of node {node} failed, see {logs}: exit statuses {statuses}")
    say(f"node {node}: done")


if __name__ == "__main__":
    main()
