"""More candidates are in hand than are measured: the others build, and their time stands still when they have."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tasks.judge.judge import Judge
from tasks.judge.room import Room
from tasks.judge.slots import BYTES_IN_HAND, IN_HAND, SHARE_IN_HAND, Slots, num_in_hand
from tests.judge_builders import KERNELS, PARAMS, Kernel, kernel, with_source

TIMEOUT_S = 4.0
NATIVE = "# load_inline of torch.utils.cpp_extension\n"
TRITON = "# import triton\n"
PLAIN = "# nothing is built\n"


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(PARAMS) as judge:
        yield judge


@pytest.fixture
def same() -> Kernel:
    return kernel(KERNELS / "honest/same.py")


def test_a_candidate_that_waits_to_be_measured_loses_none_of_its_time(
    same: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = with_source(same, NATIVE + same.candidate.source)
    with Judge(replace(PARAMS, timeout_s=TIMEOUT_S)) as judge, ThreadPoolExecutor(1) as pool:
        judge.judge(same.problem, same.candidate, seed=0)
        seats = threading.Semaphore(0)
        monkeypatch.setattr(judge, "_seats", seats)
        waiting = pool.submit(judge.judge, same.problem, same.candidate, seed=1)
        with pytest.raises(TimeoutError):
            waiting.result(1.25 * TIMEOUT_S)
        seats.release()
        verdict = waiting.result(30)
    assert verdict.status.value in ("correct", "unstable")
    assert verdict.seconds > 1.25 * TIMEOUT_S
    assert seats.acquire(blocking=False)  # it has been given back


BROKEN_AT_LOADING = "raise ValueError('not today')\nclass ModelNew: pass\n"
BROKEN_AT_ITS_FIRST_CALL = "\nModelNew.forward = lambda self, *_: 1 / 0\n"


@pytest.mark.parametrize("words", [NATIVE, TRITON])
@pytest.mark.parametrize(
    "broken", [BROKEN_AT_LOADING, BROKEN_AT_ITS_FIRST_CALL], ids=["at loading", "at its first call"]
)
def test_what_is_built_is_built_without_a_seat_and_all_else_begins_with_one(
    judge: Judge, same: Kernel, monkeypatch: pytest.MonkeyPatch, words: str, broken: str
) -> None:
    source = broken if broken is BROKEN_AT_LOADING else same.candidate.source + broken
    built, plain = (with_source(same, each + source) for each in (words, PLAIN))
    with ThreadPoolExecutor(1) as pool:
        seats = threading.Semaphore(0)
        monkeypatch.setattr(judge, "_seats", seats)
        try:
            building = pool.submit(judge.judge, built.problem, built.candidate, seed=0)
            assert building.result(60).status.value == "crashed"
            waiting = pool.submit(judge.judge, plain.problem, plain.candidate, seed=0)
            with pytest.raises(TimeoutError):
                waiting.result(1.0)
        finally:
            seats.release()
        assert waiting.result(30).status.value == "crashed"


def test_what_is_looked_at_again_is_built_again_without_a_seat(
    judge: Judge, same: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = with_source(same, "import time\ntime.sleep(1.0)\n" + same.candidate.source)
    with ThreadPoolExecutor(1) as pool:
        judge.judge(same.problem, same.candidate, seed=0)
        seats = threading.Semaphore(1)
        monkeypatch.setattr(judge, "_seats", seats)
        looked_at = pool.submit(judge.judge, slow.problem, slow.candidate, seed=1, best_speedup=0.01)
        is_taken = [_is_taken(seats) for _ in _until(looked_at.done)]
        verdict = looked_at.result()
    assert any(check.name == "second_look" for check in verdict.checks)
    turns = [taken for taken, before in zip(is_taken, [False, *is_taken], strict=False) if taken and not before]
    assert len(turns) >= 2


def _is_taken(seats: threading.Semaphore) -> bool:
    if is_free := seats.acquire(blocking=False):
        seats.release()
    return not is_free


def _until(happened: Callable[[], bool]) -> Iterator[None]:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)
        yield


@pytest.mark.parametrize("words", [NATIVE, TRITON, PLAIN])
def test_a_seat_is_given_back_by_who_fails(
    judge: Judge, same: Kernel, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    wrong = with_source(same, f"{words}{same.candidate.source}\nModelNew.forward = lambda self, *_: 1 / 0\n")
    seats = threading.Semaphore(1)
    monkeypatch.setattr(judge, "_seats", seats)
    statuses = [judge.judge(wrong.problem, wrong.candidate, seed=0).status.value for _ in range(2)]
    assert statuses == ["crashed"] * 2
    assert not _is_taken(seats)


def test_nobody_who_waits_to_enter_has_a_seat(judge: Judge, same: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or whoever wants the room for itself, those who wait behind it and those who build would wait for each other."""
    native, plain = (with_source(same, words + same.candidate.source) for words in (NATIVE, PLAIN))
    with ThreadPoolExecutor(3) as pool:
        seats = threading.Semaphore(0)
        monkeypatch.setattr(judge, "_seats", seats)
        builds = pool.submit(judge.judge, native.problem, native.candidate, seed=0)
        _await(lambda: judge._room._num_inside == 1)
        enters_alone = pool.submit(_enter_alone, judge._room)
        _await(lambda: judge._room._num_alone_or_waiting == 1)
        waits_behind = pool.submit(judge.judge, plain.problem, plain.candidate, seed=0)
        time.sleep(0.5)
        seats.release()
        assert builds.result(30).status.value in ("correct", "unstable")
        enters_alone.result(5)
        assert waits_behind.result(30).status.value in ("correct", "unstable")


def _enter_alone(room: Room) -> None:
    with room.alone():
        pass


def _await(happened: Callable[[], bool]) -> None:
    for _ in _until(happened):
        pass


@pytest.mark.parametrize("num_measured", [1, 2, 6])
def test_never_fewer_are_in_hand_than_are_measured(num_measured: int) -> None:
    assert num_in_hand(num_measured, cores=1, memory_bytes=BYTES_IN_HAND) == num_measured


def test_cores_memory_and_seats_each_limit_how_many_are_in_hand() -> None:
    plenty = 1 << 50
    assert num_in_hand(4, cores=plenty, memory_bytes=plenty) == 4 * IN_HAND
    assert num_in_hand(4, cores=7, memory_bytes=plenty) == 7
    assert num_in_hand(4, cores=plenty, memory_bytes=int(5.1 * BYTES_IN_HAND / SHARE_IN_HAND)) == 5


def test_cores_lent_first_are_those_that_no_other_judge_has() -> None:
    theirs, ours = Slots(), Slots()
    try:
        theirs.fill(2, cores=[900, 901, 902], uids=())
        ours.fill(3, cores=[900, 901, 902], uids=())
        assert ours._free.get().core == 902
    finally:
        theirs.close()
        ours.close()
