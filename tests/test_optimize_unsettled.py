"""A drop-in whose timing does not settle: where it is written all the same, and what is said where it is not."""

from pathlib import Path

import pytest

from flows.optimizing.document import verdict_document
from flows.optimizing.judging import FINAL, GRADIENTS, LONG, Record
from tasks.judge.verdict import Speedup, Status
from tasks.search.clock import Clock
from tasks.search.search import SCREEN
from tasks.search.user_file import UserFile
from tasks.variants.candidate import Candidate
from tests.optimize_builders import GivenJudges, Speeds, by_recipe, optimized, report_on, softmax_file

UNSETTLED = by_recipe(call_softmax=3.0, call_softmax_long=Status.UNSTABLE)


@pytest.fixture
def file(tmp_path: Path) -> UserFile:
    return softmax_file(tmp_path)


def test_it_is_written_where_every_bucket_is_faster_and_everything_says_whose_number_it_is(file: UserFile) -> None:
    outcome = optimized(file, GivenJudges(UNSETTLED, bucket_means=[3.4, 2.9, 3.6]), window_s=5.0)
    assert outcome.winner is not None
    assert outcome.winner[1].rung == FINAL
    assert outcome.winner[1].interval == Speedup(median=3.0, low=2.98, high=3.02)
    document = verdict_document(file, outcome)
    assert document["faster"] is True
    assert document["rung"] == FINAL
    assert "bucket means 3.400 2.900 3.600, variance 0.13" in str(document["long_timing_did_not_settle"])
    summary = report_on(file, outcome).split("## ")[0]
    assert "**3.00x (2.90 to 3.02) over eager.**" in summary
    assert "the long timing did not settle" in summary
    assert "bucket means 3.400 2.900 3.600, variance 0.13" in summary


@pytest.mark.parametrize(
    "means",
    [
        pytest.param([], id="no means are told"),
        pytest.param([3.4, 0.9, 3.6], id="one bucket is slower than eager"),
        pytest.param([3.4, 1.45, 3.6], id="one bucket is slower than the best baseline"),
    ],
)
def test_it_is_not_written_where_a_bucket_may_be_slower_and_the_report_says_what_to_do(
    file: UserFile, means: list[float]
) -> None:
    speeds = by_recipe(call_softmax=3.0, call_softmax_long=Status.UNSTABLE, compile=1.5)
    outcome = optimized(file, GivenJudges(speeds, bucket_means=means), window_s=5.0)
    assert outcome.winner is None
    summary = report_on(file, outcome).split("## ")[0]
    assert "Nothing is written" in summary
    assert "3.00x (2.98 to 3.02) over eager" in summary
    assert "unstable" in summary
    assert "--window-s 0" in summary


def test_the_lesser_of_its_two_numbers_is_claimed(file: UserFile) -> None:
    outcome = optimized(file, GivenJudges(UNSETTLED, bucket_means=[1.75, 2.5, 2.0]), window_s=5.0)
    document = verdict_document(file, outcome)
    assert document["speedup_over_eager"] == {"median": 2.0, "low": 1.75, "high": 2.5}
    summary = report_on(file, outcome).split("## ")[0]
    assert "**2.00x (1.75 to 2.50) over eager.**" in summary
    assert "The drop-in rung had 3.00x (2.98 to 3.02)" in summary


def test_it_is_not_written_where_its_two_long_looks_differ(file: UserFile) -> None:
    outcome = optimized(
        file, GivenJudges(UNSETTLED, bucket_means=[6.0, 6.1, 2.0, 2.1], looks_differ=True), window_s=5.0
    )
    assert outcome.winner is None
    assert "unstable" in report_on(file, outcome).split("## ")[0]


def test_another_drop_in_that_the_long_timing_proves_goes_before_it(file: UserFile) -> None:
    speeds = by_recipe(
        call_softmax=3.0, call_softmax_long=Status.UNSTABLE, reduction_in_c=2.99, reduction_in_c_long=2.8
    )
    outcome = optimized(file, GivenJudges(speeds, bucket_means=[3.4, 2.9, 3.6]), window_s=5.0)
    assert outcome.winner is not None
    assert (outcome.winner[1].rung, outcome.winner[1].speedup) == (LONG, 2.8)
    assert verdict_document(file, outcome)["long_timing_did_not_settle"] is None


def test_once_the_minutes_are_over_its_long_timing_is_not_begun_again(file: UserFile) -> None:
    late = Clock()
    judges = GivenJudges(UNSETTLED, bucket_means=[3.4, 2.9, 3.6])
    speeds = judges.speeds

    def late_from_the_drop_ins_on(rung: str, candidate: Candidate) -> float | Status:
        if rung == FINAL:
            late.advance(60.0)
        return speeds(rung, candidate)

    judges.speeds = late_from_the_drop_ins_on
    outcome = optimized(file, judges, window_s=5.0, clock=late)
    assert outcome.winner is not None
    assert [rung for rung, _ in judges.asked].count(LONG) == 1


def with_other_gradients(rung: str, candidate: Candidate) -> float | Status:
    return Status.WRONG_OUTPUT if rung == GRADIENTS else by_recipe(call_softmax=3.0)(rung, candidate)


@pytest.mark.parametrize(
    ("speeds", "words"),
    [
        pytest.param(by_recipe(call_softmax=3.0, call_softmax_long=0.9), "0.90x (0.88 to 0.92)", id="slower"),
        pytest.param(by_recipe(call_softmax=3.0, call_softmax_long=Status.WRONG_OUTPUT), "wrong_output", id="wrong"),
        pytest.param(with_other_gradients, "gradients are not those of the original", id="other gradients"),
    ],
)
def test_a_faster_drop_in_that_is_refused_in_the_end_is_told_of_with_the_reason(
    file: UserFile, speeds: Speeds, words: str
) -> None:
    outcome = optimized(file, GivenJudges(speeds), window_s=5.0)
    assert outcome.winner is None
    summary = report_on(file, outcome).split("## ")[0]
    assert "3.00x (2.98 to 3.02) over eager" in summary
    assert words in summary


DROP_IN_UNSETTLED = by_recipe(call_softmax=2.84, call_softmax_drop_in=Status.UNSTABLE)


def test_a_find_whose_drop_in_does_not_settle_is_told_of_with_the_remedy(file: UserFile) -> None:
    judges = GivenJudges(DROP_IN_UNSETTLED)
    outcome = optimized(file, judges)
    assert outcome.winner is None
    assert [rung for rung, _ in judges.asked].count(FINAL) == 2  # noise is given a second chance
    summary = report_on(file, outcome).split("## ")[0]
    assert "a candidate was judged 2.84x (2.82 to 2.86) over eager" in summary
    assert "the timing of its drop-in did not settle: given; repeat the command" in summary
    assert "did not settle" in str(verdict_document(file, outcome)["not_written_because"])


def test_a_find_whose_drop_in_is_refused_is_told_of_with_the_reason(file: UserFile) -> None:
    outcome = optimized(file, GivenJudges(by_recipe(call_softmax=2.84, call_softmax_drop_in=Status.CRASHED)))
    assert "2.84x (2.82 to 2.86) over eager, but its drop-in was refused: crashed: given" in outcome.unwritten


def test_of_several_finds_without_a_drop_in_the_fastest_is_told_of(file: UserFile) -> None:
    speeds = by_recipe(
        call_softmax=3.0,
        call_softmax_drop_in=Status.UNSTABLE,
        reduction_in_c=2.99,
        reduction_in_c_drop_in=Status.WRONG_OUTPUT,
    )
    outcome = optimized(file, GivenJudges(speeds))
    assert "a candidate was judged 3.00x" in outcome.unwritten
    assert len(outcome.progress.failed) >= 2


@pytest.mark.parametrize("rung", [FINAL, LONG])
def test_the_same_command_judges_again_what_did_not_settle_and_nothing_else(
    file: UserFile, tmp_path: Path, rung: str
) -> None:
    unsettled = by_recipe(**{"call_softmax": 3.0, f"call_softmax_{rung.replace('-', '_')}": Status.UNSTABLE})
    for speeds in (unsettled, by_recipe(call_softmax=3.0)):
        judges, record = GivenJudges(speeds), Record(tmp_path, [])
        outcome = optimized(file, judges, record=record, window_s=5.0)
        record.close()
    assert outcome.winner is not None
    asked = [rung for rung, _ in judges.asked]
    assert asked[0] == rung
    assert SCREEN not in asked


def test_what_did_not_settle_is_not_counted_as_refused(file: UserFile) -> None:
    report = report_on(file, optimized(file, GivenJudges(DROP_IN_UNSETTLED)))
    assert ", 0 refused, 1 not settled." in report
    settled = report_on(file, optimized(file, GivenJudges(by_recipe(call_softmax=Status.WRONG_OUTPUT))))
    assert ", 1 refused." in settled
