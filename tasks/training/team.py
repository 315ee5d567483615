"""The processes that train one model together, as each of them sees it: itself alone, unless somebody made it join.

The first of them is the stage's own process: it alone judges, writes and reports. The others hold their share of the
model and of each batch, and do the same steps.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import accumulate
from typing import Any, TypeVar

import torch
from torch import distributed

from tasks.params import EngineParams

Row = TypeVar("Row")
Result = TypeVar("Result")
Value = TypeVar("Value")

JOIN_S = 300.0
# Others wait here for the first while it judges, and for its next piece of work.
_PATIENCE = timedelta(days=7)


@dataclass(frozen=True, kw_only=True, slots=True)
class Team:
    """A process's place among those that train together."""

    engine: EngineParams = field(default_factory=EngineParams)
    number: int = 0
    size: int = 1
    control: Any = None
    """Group of processes for what is said about the work, without the time limit of the one that carries tensors."""

    @property
    def is_first(self) -> bool:
        return self.number == 0

    def agreed(self, value: Value) -> Value:
        """What the first process says, in all of them."""
        if self.size == 1:
            return value
        said = [value]
        distributed.broadcast_object_list(said, src=0, group=self.control)
        return said[0]

    def gathered(self, value: Value) -> list[Value]:
        """Every process's value, in all of them."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        distributed.all_gather_object(values, value, group=self.control)
        return values

    def by_first(self, rows: Sequence[Row], work: Callable[[list[Row]], Sequence[Result]]) -> list[Result]:
        """What work makes of the rows of all processes, done once by the first; each gets what belongs to its rows."""
        shares = self.gathered(list(rows))
        everyone = [row for share in shares for row in share]
        results = self.agreed(list(work(everyone)) if self.is_first else [])
        start = [0, *accumulate(map(len, shares))][self.number]
        return results[start : start + len(rows)]

    def wait(self) -> None:
        """Until every process is here."""
        if self.size > 1:
            distributed.barrier(group=self.control)


_joined = Team()


def team() -> Team:
    """The team of this process."""
    return _joined


@contextmanager
def alone(engine: EngineParams) -> Iterator[None]:
    """This process trains by itself, but as the engine says: compiled, or with another generator."""
    global _joined
    _joined = Team(engine=engine)
    try:
        yield
    finally:
        _joined = Team()


def join(engine: EngineParams, *, number: int, store: distributed.Store) -> Team:
    """Meet the others of the team at the store; until leave, this process trains with them.

    Libraries learn of the team from the environment, as if torchrun had started this process.
    """
    global _joined
    on_cuda = torch.cuda.is_available()
    local = number % engine.processes
    os.environ |= {
        "RANK": str(number),
        "WORLD_SIZE": str(engine.size),
        "LOCAL_RANK": str(local),
        "LOCAL_WORLD_SIZE": str(engine.processes),
        "MASTER_ADDR": os.environ.get("MASTER_ADDR", "127.0.0.1"),
        "MASTER_PORT": os.environ.get("MASTER_PORT", "29500"),
    }
    # accelerate would else choose the number of threads anew, and DeepSpeed calls torch by a name that it has replaced.
    os.environ.setdefault("OMP_NUM_THREADS", str(torch.get_num_threads()))
    warnings.filterwarnings("ignore", message=".*_tensor` is deprecated", category=FutureWarning)
    if on_cuda:
        torch.cuda.set_device(local)
    elif engine.zero_stage:
        _keep_to_gloo()
    distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if on_cuda else "gloo",
        store=store,
        rank=number,
        world_size=engine.size,
        timeout=timedelta(seconds=engine.collective_timeout_s),
    )
    control = distributed.new_group(backend="gloo", timeout=_PATIENCE)
    _joined = Team(engine=engine, number=number, size=engine.size, control=control)
    return _joined


def leave() -> None:
    """Be alone again. A process joins once: DeepSpeed does not survive a second group."""
    global _joined
    _joined = Team()
    distributed.destroy_process_group()


def _keep_to_gloo() -> None:
    """Have DeepSpeed talk through gloo; otherwise it spends a minute building an operator for shared memory."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    import deepspeed.ops
    from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder

    deepspeed.ops.__compatible_ops__[ShareMemCommBuilder.NAME] = False
