"""A problem that many candidates are judged on: its reference's process must not fill up meanwhile."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.judge.fork_server import ForkServer
from tasks.judge.study import ARENA_BYTES, Study
from tasks.judge.walls.scratch import ScratchFolder
from tests.judge_builders import problem

MEMORY_BYTES = 8 << 30
GROWTH_BYTES = 64 << 20
LOOKS = 10


@pytest.fixture
def study() -> Iterator[Study]:
    """Of a problem whose outputs are in steps, where many answers are looked at closely."""
    scratch = ScratchFolder.make()
    server = ForkServer(scratch.path)
    core = min(os.sched_getaffinity(0))
    worker = server.spawn(arena_bytes=ARENA_BYTES, core=core, uid=None, memory_bytes=MEMORY_BYTES, cpu_s=60)
    yield Study(problem("fake_quantize"), worker)
    worker.end()
    server.close()
    scratch.remove()


def resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) << 10


def test_looking_closely_again_and_again_takes_no_more_memory(study: Study) -> None:
    block = next(study.fresh_inputs(random.Random(0)))
    truth = study.outputs(block)
    weights = study.seeds[0], study.weights.states[study.seeds[0]]
    sizes = []
    for _ in range(1 + LOOKS):
        found = study.compare_closely(truth, truth, block, distribution="plain", weights=weights)
        assert found is not None
        assert found.is_equal
        sizes.append(resident_bytes(study.worker.pid))
    assert sizes[-1] - sizes[0] < GROWTH_BYTES  # outputs that were kept would be 270 MB by now
