"""A judgement that others may have disturbed is measured once more alone, and what that comes to counts."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Self, cast

import pytest

from tasks.judge.cuda import Device
from tasks.judge.evidence import Evidence, RefusedError
from tasks.judge.judge import Judge
from tasks.judge.referee import Examination
from tasks.judge.room import MeasuredAlone, Room
from tasks.judge.trials import Trials
from tasks.judge.verdict import Status, Timing, Track, Verdict
from tasks.variants.candidate import Candidate
from tests.judge_builders import KERNELS, PARAMS, RIGHT, Kernel, kernel, with_source

WAIT_S = 60.0
HONEST = kernel(KERNELS / "honest" / "in_place.py")
BUILT = with_source(HONEST, "# import triton\n" + HONEST.candidate.source)
SEEDS = (0, 1)


class DisturbedJudge(Judge):
    """A real judge of two at once, both of which end alike the first time after each disturbance."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(replace(PARAMS, workers=2, **changes))
        self._both_are_inside = threading.Barrier(2)
        self._counting = threading.Lock()

    def disturb(self, status: Status) -> None:
        self.status = status
        self.num_judged = 0

    def _examine_once(self, *arguments: Any) -> None:
        with self._counting:
            self.num_judged += 1
            is_first = self.num_judged <= 2
        if is_first:
            self._both_are_inside.wait(WAIT_S)
            raise RefusedError(self.status, "beside another")
        super()._examine_once(*arguments)


@pytest.fixture(scope="module")
def judge() -> Iterator[DisturbedJudge]:
    with DisturbedJudge() as judge:
        yield judge


class Watch:
    """Notes, of examinations, how many others were measured or built when one was measured; both build together."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.company: list[int] = []
        self._inside = 0
        self._both_build = threading.Barrier(2)
        self._counting = threading.Lock()
        self._begin, self._measure = Examination._begin, Examination._measure
        monkeypatch.setattr(Examination, "_begin", lambda *arguments: self.begin(*arguments))
        monkeypatch.setattr(Examination, "_measure", lambda *arguments: self.measure(*arguments))

    @contextlib.contextmanager
    def counted(self) -> Iterator[int]:
        with self._counting:
            found = self._inside
            self._inside += 1
        try:
            yield found
        finally:
            with self._counting:
                self._inside -= 1

    def begin(self, examination: Examination, candidate: Candidate) -> Trials:
        with self.counted():
            self._both_build.wait(WAIT_S)
            return self._begin(examination, candidate)

    def measure(self, examination: Examination, trials: Trials) -> Timing:
        with self.counted() as found:
            self.company.append(found)
            return self._measure(examination, trials)


def judged_side_by_side(judge: Judge, kernel: Kernel = HONEST) -> list[Verdict]:
    with ThreadPoolExecutor(len(SEEDS)) as pool:
        return list(pool.map(lambda seed: judge.judge(kernel.problem, kernel.candidate, seed=seed), SEEDS))


def test_whoever_did_not_settle_beside_another_is_built_again_beside_others_and_measured_alone(
    judge: DisturbedJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(monkeypatch)
    judge.disturb(Status.UNSTABLE)
    assert {verdict.status for verdict in judged_side_by_side(judge, BUILT)} <= set(RIGHT)
    assert watch.company == [0, 0]
    assert judge.num_judged == 4


def test_who_does_not_settle_alone_is_not_judged_a_third_time(
    judge: DisturbedJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise RefusedError(Status.UNSTABLE, "by itself")

    judge.disturb(Status.UNSTABLE)
    monkeypatch.setattr(Examination, "run", refuse)
    assert {verdict.status for verdict in judged_side_by_side(judge)} == {Status.UNSTABLE}
    assert judge.num_judged == 4


def test_who_is_measured_alone_lets_others_in_while_it_builds() -> None:
    room = Room()
    with MeasuredAlone(room) as stay, ThreadPoolExecutor(1) as pool:
        for _ in range(2):  # also for a second look
            pool.submit(_enter, room).result(WAIT_S)
            stay.take()
            stay.take()
            entering = pool.submit(_enter, room)
            with pytest.raises(TimeoutError):
                entering.result(0.2)
            assert not stay.had_company()  # though others were there while it built
            stay.leave()
            stay.leave()
            entering.result(WAIT_S)
            assert stay.had_company()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_enter_alone, room).result(WAIT_S)  # it has left altogether


def _enter_alone(room: Room) -> None:
    with room.alone():
        pass


def _enter(room: Room) -> None:
    with room.shared():
        pass


@pytest.mark.parametrize("status", [Status.TIMEOUT, Status.WRONG_OUTPUT], ids=["out of time by itself", "other values"])
def test_what_others_are_not_to_blame_for_is_final(judge: DisturbedJudge, status: Status) -> None:
    judge.disturb(status)
    assert [verdict.status for verdict in judged_side_by_side(judge)] == [status, status]
    assert judge.num_judged == 2


def test_what_does_not_settle_is_final_in_the_long_tier() -> None:
    with DisturbedJudge(tier="long") as judge:
        judge.disturb(Status.UNSTABLE)
        assert [verdict.status for verdict in judged_side_by_side(judge)] == [Status.UNSTABLE] * 2
    assert judge.num_judged == 2


class HeldUpJudge(Judge):
    """A judge on a device of these three at once, which run out of time in their order; whoever is alone answers."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        super().__init__(replace(PARAMS, workers=3))
        self.judged: list[int] = []
        self._candidates = candidates
        self._all_are_inside = threading.Barrier(3)
        self._ends = [threading.Event() for _ in range(3)]
        self._ends[0].set()

    def __enter__(self) -> Self:
        super().__enter__()
        self._device = cast(Device, object())
        return self

    def _examine_once(self, *arguments: Any) -> None:
        number = self._candidates.index(arguments[3])
        is_first_time = number not in self.judged
        self.judged.append(number)
        if is_first_time:
            self._all_are_inside.wait(WAIT_S)
            self._ends[number].wait(WAIT_S)
            for following in self._ends[number + 1 : number + 2]:
                threading.Timer(0.2, following.set).start()
            raise RefusedError(Status.TIMEOUT, "no answer")
        raise RefusedError(Status.WRONG_OUTPUT, "an answer at last")


def test_of_those_that_run_out_of_time_on_a_device_the_last_is_to_blame_and_the_others_are_judged_again() -> None:
    candidates = [replace(HONEST.candidate, source=f"{HONEST.source}\n# {number}\n") for number in range(3)]
    with HeldUpJudge(candidates) as judge, ThreadPoolExecutor(3) as pool:
        verdicts = list(pool.map(lambda candidate: judge.judge(HONEST.problem, candidate, seed=0), candidates))
    assert [verdict.status for verdict in verdicts] == [Status.WRONG_OUTPUT, Status.WRONG_OUTPUT, Status.TIMEOUT]
    assert sorted(judge.judged) == [0, 0, 1, 1, 2]


def test_nothing_of_the_attempt_that_does_not_count_is_left_in_the_verdict() -> None:
    evidence = Evidence(max_error=0.5, track=Track.KERNEL)
    evidence.passed("fresh_inputs")
    evidence.clear()
    assert evidence == Evidence()


def test_the_room_knows_who_was_there_at_the_same_time() -> None:
    room = Room()
    with room.shared() as first_had_company:
        assert not first_had_company()
        with room.shared() as second_had_company:
            pass
        assert first_had_company()  # also when the other has left
        assert second_had_company()
    with room.alone() as had_company:
        assert not had_company()


def test_who_was_alone_from_the_beginning_is_not_judged_again(
    judge: DisturbedJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = []

    def refuse(*_: Any) -> None:
        judged.append(Status.UNSTABLE)
        raise RefusedError(Status.UNSTABLE, "by itself")

    monkeypatch.setattr(judge, "_examine_once", refuse)
    assert judge.judge(HONEST.problem, HONEST.candidate, seed=0).status is Status.UNSTABLE
    assert judged == [Status.UNSTABLE]
