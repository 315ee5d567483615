"""A problem whose inputs or outputs find no room is studied once more with more of it, and refused only then."""

import os
from collections.abc import Callable, Iterator

import pytest

from tasks.judge.fork_server import ForkServer
from tasks.judge.processes import WorkerProcess
from tasks.judge.program import Layout
from tasks.judge.studies import Studies
from tasks.judge.study import BadProblemError
from tests.judge_builders import problem_of

MIB = 1 << 20
SMALL, LARGE = (Layout.fitting(state_bytes=MIB, input_bytes=size * MIB, output_bytes=size * MIB) for size in (1, 4))
SOURCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.repeat(1, OUT) + 1.0


def get_inputs():
    return [torch.randn(64, IN)]


def get_init_inputs():
    return []
"""

Spawn = Callable[[Layout], WorkerProcess]


@pytest.fixture
def rooms() -> list[Layout]:
    """Those that workers were started with."""
    return []


@pytest.fixture
def spawn(fork_server: ForkServer, rooms: list[Layout]) -> Spawn:
    core = min(os.sched_getaffinity(0))

    def spawned(layout: Layout) -> WorkerProcess:
        rooms.append(layout)
        return fork_server.spawn(arena_bytes=layout.num_bytes, core=core, uid=None, memory_bytes=2 << 30, cpu_s=60)

    return spawned


@pytest.fixture
def studies() -> Iterator[Studies]:
    studies = Studies(max_kept=0, layouts=[SMALL, LARGE])
    yield studies
    studies.drop_all()


@pytest.mark.parametrize(
    ("columns", "times", "tried"),
    [
        (64, 1, [SMALL]),
        (64, 48, [SMALL, LARGE]),
        (64, 128, [SMALL, LARGE]),
        (64, 192, [SMALL, LARGE]),
        (8192, 1, [SMALL, LARGE]),
    ],
    ids=["small", "large in double precision", "large outputs", "too large in double precision", "large inputs"],
)
def test_room_is_made_where_it_is_needed(
    columns: int, times: int, tried: list[Layout], studies: Studies, spawn: Spawn, rooms: list[Layout]
) -> None:
    study = studies.take(problem_of(SOURCE.replace("IN", str(columns)).replace("OUT", str(times))), spawn)
    assert rooms == tried
    assert study.output_specs[0].shape == (64, columns * times)
    studies.give_back(study)


def test_what_finds_no_room_at_all_is_refused_with_its_size_and_not_tried_again(
    studies: Studies, spawn: Spawn, rooms: list[Layout]
) -> None:
    huge = problem_of(SOURCE.replace("IN", "64").replace("OUT", "1024"))
    for _ in range(2):
        with pytest.raises(
            BadProblemError, match=r"16777216 bytes, there is room for 4194304|of shape .64, 65536. is too large"
        ):
            studies.take(huge, spawn)
    assert rooms == [SMALL, LARGE]


def test_another_mistake_of_a_reference_is_no_reason_for_more_room(
    studies: Studies, spawn: Spawn, rooms: list[Layout]
) -> None:
    with pytest.raises(BadProblemError, match="name 'nothing' is not defined"):
        studies.take(problem_of(SOURCE.replace("IN", "64").replace("OUT", "nothing")), spawn)
    assert rooms == [SMALL]


def test_memory_goes_back_to_the_system_when_a_study_ends(
    studies: Studies, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_bytes: list[int] = []
    monkeypatch.setattr("tasks.judge.studies.TRIM_HEAP", kept_bytes.append)
    study = studies.take(problem_of(SOURCE.replace("IN", "64").replace("OUT", "1")), spawn)
    assert not kept_bytes
    studies.give_back(study)
    assert kept_bytes == [0]
