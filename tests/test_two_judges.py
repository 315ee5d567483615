"""Judges that run on one machine at the same time keep out of each other's way."""

import os
import re
from collections.abc import Iterator

import pytest

from tasks.judge.judge import Judge
from tasks.judge.slots import Slots
from tests.judge_builders import KERNELS, PARAMS, kernel, with_source

TELLS_WHO_IT_IS = """
import os

raise RuntimeError(f"user {os.getuid()}")
class ModelNew: pass
"""
FIRST = os.getpid() * 10  # names are the machine's: two checkouts may be tested at once
CORES, UIDS = (FIRST + 1, FIRST + 2), (FIRST + 3, FIRST + 4, FIRST + 5)


@pytest.fixture
def slots() -> Iterator[list[Slots]]:
    opened = [Slots() for _ in range(3)]
    yield opened
    for each in opened:
        each.close()


def taken(slots: Slots) -> tuple[int, int | None]:
    slot = slots._free.get()
    return slot.core, slot.uid


def test_another_judge_gets_other_cores_and_users(slots: list[Slots]) -> None:
    for each in slots[:2]:
        each.fill(1, cores=CORES, uids=UIDS)
    assert [taken(each) for each in slots[:2]] == [(FIRST + 1, FIRST + 3), (FIRST + 2, FIRST + 4)]


def test_what_all_judges_together_have_too_little_of_is_shared(slots: list[Slots]) -> None:
    slots[0].fill(2, cores=CORES, uids=UIDS)
    slots[1].fill(2, cores=CORES, uids=UIDS)
    assert [taken(slots[0]) for _ in range(2)] == [(FIRST + 1, FIRST + 3), (FIRST + 2, FIRST + 4)]
    assert [taken(slots[1])[0] for _ in range(2)] == [FIRST + 1, FIRST + 2]


def test_what_a_closed_judge_had_is_free_again(slots: list[Slots]) -> None:
    slots[0].fill(1, cores=CORES, uids=UIDS)
    slots[0].close()
    slots[1].fill(1, cores=CORES, uids=UIDS)
    assert taken(slots[1]) == (FIRST + 1, FIRST + 3)


def test_workers_without_users_of_their_own_get_cores_alone(slots: list[Slots]) -> None:
    slots[0].fill(1, cores=CORES, uids=())
    assert taken(slots[0]) == (FIRST + 1, None)


def test_candidates_of_two_judges_are_other_users() -> None:
    asked = with_source(kernel(KERNELS / "honest/same.py"), TELLS_WHO_IT_IS)
    with Judge(PARAMS) as first, Judge(PARAMS) as second:
        verdicts = [judge.judge(asked.problem, asked.candidate, seed=0) for judge in (first, second)]
    found = [re.search(r"RuntimeError: user (\d+)", verdict.detail) for verdict in verdicts]
    users = [match and match[1] for match in found]
    assert None not in users
    if "uid" in first.environment["walls"]:
        assert users[0] != users[1]
