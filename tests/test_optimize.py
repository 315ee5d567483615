"""An optimization's decisions, with a judge whose answers are given."""

import json
from pathlib import Path

import pytest

from flows.optimizing.document import verdict_document
from flows.optimizing.judging import FINAL, GRADIENTS, LONG, Record
from tasks.errors import ProblemError, WorkerError
from tasks.judge.verdict import Speedup, Status, Verdict
from tasks.search.clock import Clock
from tasks.search.proposers import Proposer
from tasks.search.search import AGAIN, SCREEN
from tasks.search.user_file import UserFile
from tasks.variants.candidate import Candidate
from tests.optimize_builders import GivenJudges, Speeds, by_recipe, optimization_of, optimized, softmax_file


@pytest.fixture
def file(tmp_path: Path) -> UserFile:
    return softmax_file(tmp_path)


def rungs(judges: GivenJudges) -> list[str]:
    return [rung for rung, _ in judges.asked]


def test_the_fastest_that_is_still_fast_as_a_drop_in_wins(file: UserFile) -> None:
    judges = GivenJudges(by_recipe(call_softmax=3.0, reduction_in_c=3.2, reduction_in_c_drop_in=2.0, compile=1.5))
    outcome = optimized(file, judges, candidates=4)
    assert outcome.winner is not None
    made, scored = outcome.winner
    assert scored.candidate.recipe[-1] == "call_softmax"
    assert scored.interval == Speedup(median=3.0, low=2.98, high=3.02)
    assert outcome.baseline[0] == "compile"
    assert made.judged.source.startswith(made.source)
    assert judges.asked[-1][0] == GRADIENTS


@pytest.mark.parametrize(
    "speeds",
    [
        pytest.param(by_recipe(), id="nothing is faster than eager"),
        pytest.param(by_recipe(call_softmax=1.3, compile=1.4), id="the compiler is faster"),
        pytest.param(by_recipe(call_softmax=1.43, compile=1.40), id="the intervals overlap"),
        pytest.param(by_recipe(call_softmax=3.0, call_softmax_drop_in=0.9), id="the guards cost more than is won"),
        pytest.param(by_recipe(call_softmax=3.0, call_softmax_drop_in=Status.WRONG_OUTPUT), id="the drop-in is wrong"),
        pytest.param(by_recipe(call_softmax=Status.CHEATED), id="refused"),
        pytest.param(
            lambda rung, candidate: Status.WRONG_OUTPUT if rung == GRADIENTS else 3.0 if candidate.recipe else 1.0,
            id="other gradients",
        ),
    ],
)
def test_what_is_not_faster_for_sure_never_wins(file: UserFile, speeds: Speeds) -> None:
    outcome = optimized(file, GivenJudges(speeds))
    assert outcome.winner is None
    document = verdict_document(file, outcome)
    assert document["faster"] is False
    assert document["speedup_over_eager"] is None
    assert document["drop_in_sha256"] is None


def test_baselines_are_judged_last_and_only_where_something_is_faster_than_eager(file: UserFile) -> None:
    judges = GivenJudges(by_recipe(call_softmax=3.0))
    outcome = optimized(file, judges)
    origins = [candidate.origin for _, candidate in judges.asked]
    assert origins.index("baseline:compile") > origins.index("drop-in")
    assert outcome.not_judged == {}
    judges = GivenJudges(by_recipe())
    outcome = optimized(file, judges)
    assert "baseline:compile" not in {candidate.origin for _, candidate in judges.asked}
    assert outcome.not_judged == {"compile": "nothing was found that is faster than eager for sure"}


def test_a_find_is_compared_with_baselines_though_the_minutes_are_over(file: UserFile) -> None:
    late = Clock()
    judges = GivenJudges(by_recipe(call_softmax=3.0, compile=4.0))

    def spend(step: str) -> None:
        if "drop-in" in step:
            late.advance(100.0)

    outcome = optimized(file, judges, clock=late, on_step=spend)
    assert late.elapsed_s > 60.0
    assert outcome.not_judged == {}
    assert outcome.baseline[0] == "compile"
    assert outcome.winner is None


def test_a_baseline_without_a_verdict_is_said_to_be_so(file: UserFile) -> None:
    late = Clock()
    late.advance(100.0)
    judges = GivenJudges(by_recipe(call_softmax=3.0))
    record = Record(None, [])
    optimized(file, judges, record=record)
    del record.known[FINAL, next(c.candidate_id for _, c in judges.asked if c.origin == "baseline:compile")]
    outcome = optimized(file, judges, record=record, clock=late, screening_share=10.0, proves_all=False)
    assert outcome.winner is not None
    assert outcome.not_judged == {"compile": "the time was over"}
    assert verdict_document(file, outcome)["baselines_not_judged"] == outcome.not_judged
    outcome = optimized(file, GivenJudges(by_recipe(call_softmax=3.0, compile=Status.UNSTABLE)))
    assert outcome.winner is not None
    assert outcome.not_judged == {"compile": "its times did not settle"}


def test_screening_goes_on_where_it_was_left(file: UserFile) -> None:
    in_parts, at_once = GivenJudges(by_recipe(call_amax=1.5)), GivenJudges(by_recipe(call_amax=1.5))
    optimization = optimization_of(file, in_parts, candidates=None)
    assert optimization.promise > 1.0
    for count in (4, 8):
        optimization.screen(more=4)
        assert rungs(in_parts).count(SCREEN) == count
    optimization_of(file, at_once, candidates=8).screen()
    assert in_parts.asked == at_once.asked


def test_the_long_tier_has_the_last_word(file: UserFile) -> None:
    unsteady = by_recipe(call_softmax=3.0, call_softmax_long=Status.UNSTABLE)
    assert optimized(file, GivenJudges(unsteady), window_s=5.0).winner is None
    judges = GivenJudges(by_recipe(call_softmax=3.0, call_softmax_long=2.5))
    outcome = optimized(file, judges, window_s=5.0)
    assert outcome.winner is not None
    assert outcome.winner[1].rung == LONG
    assert outcome.winner[1].speedup == 2.5


@pytest.mark.parametrize(
    ("spread", "counts"),
    [
        pytest.param(1.0, [12, 4, 2], id="intervals overlap"),
        pytest.param(0.02, [12, 0, 1], id="one is the fastest for sure"),
    ],
)
def test_each_rung_sees_fewer_than_the_one_before(file: UserFile, spread: float, counts: list[int]) -> None:
    speeds = by_recipe(call_softmax=2.4, call_amax=2.1, reduction_in_c=2.2, work_in_place=2.0, return_directly=2.3)
    judges = GivenJudges(speeds, spread=spread)
    optimized(file, judges)
    drop_ins = [(rung, candidate) for rung, candidate in judges.asked if not candidate.origin.startswith("baseline")]
    assert [[rung for rung, _ in drop_ins].count(rung) for rung in (SCREEN, AGAIN, FINAL)] == counts


def test_winners_are_composed(file: UserFile) -> None:
    judges = GivenJudges(by_recipe(call_amax=1.5))
    optimized(file, judges, candidates=30)
    recipes = {candidate.recipe for _, candidate in judges.asked}
    assert any(len(recipe) == 2 and recipe[0] == "call_amax" for recipe in recipes)


def test_an_unstable_verdict_is_asked_for_again(file: UserFile) -> None:
    answers = iter([Status.UNSTABLE, 2.0])
    judges = GivenJudges(lambda rung, candidate: next(answers, 1.0))
    assert optimized(file, judges, candidates=1).progress.scored[0].speedup == 2.0


def test_a_judge_that_fails_once_is_asked_again_and_twice_is_our_error(file: UserFile) -> None:
    failures = iter([True])

    def once(rung: str, candidate: Candidate) -> float:
        if next(failures, False):
            raise WorkerError("gone")
        return 1.0

    assert optimized(file, GivenJudges(once), candidates=1).progress.scored[0].speedup == 1.0

    def always(rung: str, candidate: Candidate) -> float:
        raise WorkerError("gone")

    with pytest.raises(WorkerError):
        optimized(file, GivenJudges(always), candidates=1)


@pytest.mark.parametrize("proposers", [None, []], ids=["candidates", "no candidate"])
def test_a_module_that_cannot_be_judged_is_said_to_be_so(file: UserFile, proposers: list[Proposer] | None) -> None:
    with pytest.raises(ProblemError, match="Softmax cannot be judged: given"):
        optimized(file, GivenJudges(lambda rung, candidate: Status.BAD_PROBLEM), proposers=proposers)


def test_the_first_interrupt_keeps_the_best_so_far(file: UserFile) -> None:
    judges = GivenJudges(by_recipe(call_softmax=3.0, reduction_in_c=2.0))
    outcome = optimized(file, judges, stop_after=8)
    assert outcome.interrupted
    assert rungs(judges).count(SCREEN) == 8
    assert outcome.winner is not None


@pytest.mark.parametrize("used_s", [0.0, 50.0], ids=["early", "after the screen"])
def test_a_killed_run_asks_nothing_twice(file: UserFile, tmp_path: Path, used_s: float) -> None:
    speeds = by_recipe(call_softmax=3.0)
    first = GivenJudges(speeds)
    record = Record(tmp_path, ["this"])
    optimized(file, first, record=record, stop_after=12 if used_s else 5)
    record.close()
    with (tmp_path / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"rung": "scr')  # what a kill leaves
    second, clock = GivenJudges(speeds), Clock()
    record = Record(tmp_path, ["this"])
    known = {
        key: (verdict, used_s if key[0] != SCREEN else elapsed_s) for key, (verdict, elapsed_s) in record.known.items()
    }
    record.known = known
    outcome = optimized(file, second, record=record, clock=clock)
    record.close()
    assert clock.elapsed_s >= used_s
    asked = [(rung, candidate.candidate_id) for judges in (first, second) for rung, candidate in judges.asked]
    assert len(asked) == len(set(asked))
    uninterrupted = optimized(file, GivenJudges(speeds))
    assert outcome.winner is not None
    assert uninterrupted.winner is not None
    assert outcome.winner[0].source == uninterrupted.winner[0].source


def test_a_journal_about_something_else_is_begun_anew(file: UserFile, tmp_path: Path) -> None:
    record = Record(tmp_path, ["this"])
    optimized(file, GivenJudges(by_recipe()), record=record, candidates=2)
    record.close()
    other = Record(tmp_path, ["that"])
    assert other.known == {}
    other.close()


def test_the_document_has_every_number_behind_the_claim(file: UserFile) -> None:
    outcome = optimized(file, GivenJudges(by_recipe(call_softmax=3.0, compile=1.5)))
    document = json.loads(json.dumps(verdict_document(file, outcome)))
    assert document["speedup_over_eager"] == {"median": 3.0, "low": 2.98, "high": 3.02}
    assert document["speedup_over_best_baseline"] == pytest.approx(
        {"median": 2.0, "low": 2.98 / 1.52, "high": 3.02 / 1.48}
    )
    assert Verdict.from_json(document["verdict"]).candidate_id == outcome.winner[1].verdict.candidate_id  # type: ignore[index]
    assert document["gradients"] == "correct"
