"""Control groups limit what they hold, are used again and are left behind by nobody, where this machine has them."""

import os
import signal
from collections.abc import Iterator

import pytest

from tasks.judge.walls.cgroup import ControlGroups, join
from tasks.judge.walls.scratch import PREFIX

MEMORY_BYTES = 64 << 20


@pytest.fixture
def groups() -> Iterator[ControlGroups]:
    groups = ControlGroups(f"{PREFIX}test-{os.getpid()}")
    if groups.take(memory_bytes=MEMORY_BYTES, processes=8) is None:
        pytest.skip("this machine lets us make no control groups")
    yield groups
    groups.close()


def status_of_child(entrances: list[str], num_bytes: int) -> int:
    """How a process ends that enters and then fills so much memory."""
    child = os.fork()
    if child == 0:
        filled = b"x" * num_bytes if join(entrances) else b""
        os._exit(0 if filled else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_process_that_takes_too_much_is_killed_and_counted(groups: ControlGroups) -> None:
    group = groups.take(memory_bytes=MEMORY_BYTES, processes=8)
    assert status_of_child(group.entrances, MEMORY_BYTES // 2) == 0
    assert group.num_kills == 0
    assert status_of_child(group.entrances, 2 * MEMORY_BYTES) == -signal.SIGKILL
    assert group.num_kills >= 1  # where the kernel kills whole groups it counts the first one twice


def test_a_group_is_used_again_with_other_limits_once_it_is_empty(groups: ControlGroups) -> None:
    group = groups.take(memory_bytes=MEMORY_BYTES, processes=8)
    groups.give_back(group)
    again = groups.take(memory_bytes=4 * MEMORY_BYTES, processes=8)
    assert again == group
    assert status_of_child(again.entrances, 2 * MEMORY_BYTES) == 0


def test_a_group_in_which_something_is_left_is_not_used_again(groups: ControlGroups) -> None:
    group = groups.take(memory_bytes=MEMORY_BYTES, processes=8)
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        join(group.entrances)
        os.write(tell, b"x")
        signal.pause()
    os.read(ready, 1)
    groups.give_back(group)
    assert groups.take(memory_bytes=MEMORY_BYTES, processes=8) != group
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready)
    os.close(tell)


def test_groups_of_killed_judges_are_swept_and_those_of_living_ones_are_not(groups: ControlGroups) -> None:
    living = groups.take(memory_bytes=MEMORY_BYTES, processes=8)
    killed = ControlGroups(f"{PREFIX}test-{os.getpid()}-killed")
    abandoned = killed.take(memory_bytes=MEMORY_BYTES, processes=8)
    for fd in killed._places.values():
        os.close(fd)  # what the kernel does for a killed process
    ControlGroups(f"{PREFIX}test-{os.getpid()}-third").close()
    assert not any(folder.exists() for folder in abandoned.folders)
    assert all(folder.exists() for folder in living.folders)


def test_closing_leaves_nothing(groups: ControlGroups) -> None:
    group = groups.take(memory_bytes=MEMORY_BYTES, processes=8)
    groups.close()
    assert not any(folder.parent.exists() for folder in group.folders)
    assert groups.take(memory_bytes=MEMORY_BYTES, processes=8) is None


@pytest.mark.parametrize("entrances", [[], ["/nowhere/cgroup.procs"]], ids=["none", "missing"])
def test_a_group_that_cannot_be_entered_is_no_wall(entrances: list[str]) -> None:
    assert not join(entrances)
