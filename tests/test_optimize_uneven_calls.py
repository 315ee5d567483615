"""A speedup that was charged for uneven calls says so, and a drop-in is not discarded for them at the first look."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from flows.optimizing.document import verdict_document
from flows.optimizing.judging import FINAL, JOURNAL, LONG, Record
from tasks.judge.verdict import Check, Status, Verdict
from tasks.problems.problem import Problem
from tasks.search.clock import Clock
from tasks.search.report import charges
from tasks.search.texts import problem_texts
from tasks.search.user_file import UserFile
from tasks.variants.candidate import Candidate
from tests.optimize_builders import FACTS, GivenJudge, GivenJudges, by_recipe, optimized, report_on, softmax_file

UNEVEN = "calls take 2.02 times as long as the quickest on average, unlike the reference's"


class UnevenJudges(GivenJudges):
    """Finds these speeds one after the other at a rung, the last again and again, and charged the first so many."""

    def __init__(self, rung: str, found: list[float], *, charged: int, clock: Clock | None = None) -> None:
        super().__init__(by_recipe(call_softmax=3.0))
        self.uneven_rung, self.charged, self.clock = rung, charged, clock
        left, given = iter(found), self.speeds
        self.speeds = lambda at, candidate: (
            next(left, found[-1]) if at == rung and candidate.recipe else given(at, candidate)
        )

    def at(self, rung: str) -> GivenJudge:
        return UnevenJudge(self, rung) if rung == self.uneven_rung else super().at(rung)


class UnevenJudge(GivenJudge):
    judges: UnevenJudges

    def judge(self, problem: Problem, candidate: Candidate, *, seed: int, best_speedup: float | None) -> Verdict:
        verdict = super().judge(problem, candidate, seed=seed, best_speedup=best_speedup)
        if self.judges.clock:
            self.judges.clock.advance(60.0)
        if not self.judges.charged:
            return verdict
        self.judges.charged -= 1
        return replace(verdict, checks=(Check(name="uneven_calls", passed=True, evidence=UNEVEN),))


@pytest.fixture
def file(tmp_path: Path) -> UserFile:
    return softmax_file(tmp_path)


def asked_at(judges: GivenJudges, rung: str) -> int:
    return sum(asked == rung and not each.origin.startswith("baseline") for asked, each in judges.asked)


def rows_of(report: str, rung: str) -> Iterator[str]:
    return (line for line in report.splitlines() if f"| {rung} |" in line)


def test_the_charge_is_in_the_verdict_column_and_in_the_reason(file: UserFile) -> None:
    outcome = optimized(file, UnevenJudges(FINAL, [0.54], charged=2))
    words = f"0.54x (0.52 to 0.56), charged for uneven calls: {UNEVEN}"
    (row,) = rows_of(report_on(file, outcome), FINAL)
    assert row.endswith(f"| {words} |")
    assert str(verdict_document(file, outcome)["not_written_because"]).endswith(words)


@pytest.mark.parametrize("rung", [FINAL, LONG])
def test_a_drop_in_that_is_slow_for_uneven_calls_is_judged_once_more(file: UserFile, rung: str) -> None:
    judges = UnevenJudges(rung, [0.54, 2.5], charged=1)
    outcome = optimized(file, judges, window_s=5.0)
    assert outcome.winner is not None
    assert asked_at(judges, rung) == 2
    assert UNEVEN not in report_on(file, outcome)


def test_twice_is_enough(file: UserFile) -> None:
    judges = UnevenJudges(FINAL, [0.54, 0.55, 2.5], charged=2)
    assert optimized(file, judges).winner is None
    assert asked_at(judges, FINAL) == 2


@pytest.mark.parametrize(
    ("speedup", "charged"),
    [pytest.param(2.5, 1, id="faster all the same"), pytest.param(0.54, 0, id="slow without a charge")],
)
def test_others_are_judged_once(file: UserFile, speedup: float, charged: int) -> None:
    judges = UnevenJudges(FINAL, [speedup], charged=charged)
    optimized(file, judges)
    assert asked_at(judges, FINAL) == 1


def test_once_the_minutes_are_over_its_long_timing_is_not_begun_again(file: UserFile) -> None:
    late = Clock()
    judges = UnevenJudges(LONG, [0.54, 2.5], charged=1, clock=late)
    assert optimized(file, judges, window_s=5.0, clock=late).winner is None
    assert asked_at(judges, LONG) == 1


@pytest.mark.parametrize("rung", [FINAL, LONG])
def test_an_interrupted_run_goes_on_from_the_newer_verdict(file: UserFile, tmp_path: Path, rung: str) -> None:
    with contextlib.closing(Record(tmp_path, ["this"])) as record:
        first = optimized(file, UnevenJudges(rung, [0.54, 2.5], charged=1), window_s=5.0, record=record)
    rows = [json.loads(line) for line in (tmp_path / JOURNAL).read_text().splitlines()]
    assert not any(charges(Verdict.from_json(row["verdict"])) for row in rows)  # what was judged once more is not kept
    judges = UnevenJudges(rung, [0.54], charged=9)
    with contextlib.closing(Record(tmp_path, ["this"])) as record:
        again = optimized(file, judges, window_s=5.0, record=record)
    assert judges.asked == []
    assert first.winner is not None
    assert again.winner == first.winner


@pytest.mark.parametrize("newer", [2.5, Status.UNSTABLE], ids=["settled", "to be judged afresh"])
def test_of_two_verdicts_in_a_journal_the_newer_counts(file: UserFile, tmp_path: Path, newer: float | Status) -> None:
    texts, found = problem_texts(file, FACTS), iter([0.54, newer])
    judge = GivenJudges(lambda rung, candidate: next(found)).at(FINAL)
    candidate = Candidate(problem_id="softmax", source="ModelNew = None", origin="test")
    verdicts = [judge.judge(texts.judged, candidate, seed=0, best_speedup=None) for _ in range(2)]
    with contextlib.closing(Record(tmp_path, ["this"])) as record:
        for verdict in verdicts:
            record.add(FINAL, verdict, elapsed_s=1.0)
    with contextlib.closing(Record(tmp_path, ["this"])) as record:
        known = [verdict for verdict, _ in record.known.values()]
    assert known == ([] if newer is Status.UNSTABLE else verdicts[1:])
