"""A verdict's track tells what this candidate did, whatever the judge has warmed up or judged before."""

import dataclasses
import time
from collections.abc import Iterator

import numpy as np
import pytest

from tasks.judge.baselines import baseline_candidate
from tasks.judge.compilers import GRAPHS
from tasks.judge.fork_server import ForkServer
from tasks.judge.judge import Judge
from tasks.judge.verdict import Status, Track
from tasks.judge.walls.scratch import ScratchFolder
from tests.judge_builders import KERNELS, PARAMS, RIGHT, Kernel, kernel, problem, with_source

PLAIN = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
COMPILED = with_source(kernel(KERNELS / "honest/same.py"), baseline_candidate(problem("row_softmax"), "compile").source)
ATTEMPTS = 8


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """A judge that has judged a compiled candidate; half a minute where headers must be compiled first."""
    with Judge(dataclasses.replace(PARAMS, timeout_s=120.0, memory_bytes=4 << 30)) as judge:
        assert track_of(judge, COMPILED) is Track.GRAPH
        yield judge


def track_of(judge: Judge, kernel: Kernel) -> Track | None:
    """The track of the first verdict that is correct; on a busy machine some are unstable and have none."""
    for _ in range(ATTEMPTS):
        verdict = judge.judge(kernel.problem, kernel.candidate, seed=0)
        assert verdict.status in RIGHT, verdict.detail
        if verdict.status is Status.CORRECT:
            return verdict.track
    pytest.skip(f"this machine is too busy: {ATTEMPTS} verdicts in a row were unstable")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("candidate", "track"),
    [
        pytest.param(kernel(KERNELS / "honest/same.py"), Track.FRAMEWORK, id="plain"),
        pytest.param(kernel(KERNELS / "honest/c_kernel.py"), Track.KERNEL, id="C"),
        pytest.param(COMPILED, Track.GRAPH, id="compiled"),
    ],
)
def test_a_candidate_judged_after_a_compiled_one_is_on_its_own_track(
    judge: Judge, candidate: Kernel, track: Track
) -> None:
    assert track_of(judge, candidate) is track


@pytest.mark.slow
def test_a_worker_does_not_count_what_the_warm_up_compiled() -> None:
    scratch = ScratchFolder.make()
    server = ForkServer(scratch.path)
    server.load_compilers([GRAPHS])
    worker = server.spawn(arena_bytes=1 << 20, core=0, uid=None, memory_bytes=4 << 30, cpu_s=60)
    try:
        text = np.frombuffer(PLAIN.encode(), dtype=np.uint8)
        worker.arena.write(0, text)
        deadline = time.monotonic() + 60
        worker.ask(
            "load", deadline, num_bytes=text.size, filename="candidate.py", class_name="ModelNew", precision="fp32"
        )
        assert worker.ask("loaded", deadline)["compiled_frames"] == 0
    finally:
        worker.end()
        server.close()
        scratch.remove()
