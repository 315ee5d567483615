"""Kernels whose times do not settle are held against nobody: the next best one counts, or the problem is left out."""

from dataclasses import replace

import pytest

from flows.parts.sampling import Draw, Request
from flows.retraining.comparison_judging import best_first, skill, until_settled
from tasks.judge.verdict import Status, Timing, Verdict
from tasks.problems.problem import Split
from tasks.report.comparison import Bout, Decision, Skill, decide
from tasks.report.comparison_page import bout_rows, comparison_metrics, decision_page
from tasks.variants.candidate import Candidate

PROBLEM = "level1/a"
FAST, NOISY = Skill(num_samples=4, num_correct=4, speedup=4.0), Skill(num_samples=4, num_correct=4, speedup=None)
UNSTABLE = replace(NOISY, is_unstable=True)
DRAWS = [
    Draw(
        request=Request(problem_id=PROBLEM, prompt="", exemplar_ids=()),
        completion="",
        candidate=Candidate(problem_id=PROBLEM, source=f"speed = {speedup}", origin="test"),
        temperature=0.0,
    )
    for speedup in (2, 5, 3, 4)
]


def verdict(candidate: Candidate, *, status: Status = Status.CORRECT) -> Verdict:
    speedup = float(candidate.source.split()[-1])
    timing = Timing(baseline="eager", reference_ms=(speedup,), candidate_ms=(1.0,))
    return Verdict(
        candidate_id=candidate.candidate_id,
        problem_id=PROBLEM,
        status=status,
        device="test",
        protocol="test",
        timing=timing if status is Status.CORRECT else None,
        detail="" if status is Status.CORRECT else "its times",
        seconds=0.0,
        judged_at=0.0,
    )


@pytest.mark.parametrize(
    ("noisy", "asked", "expected"),
    [
        pytest.param(set(), 1, (5.0, False), id="the best one settles"),
        pytest.param({5}, 2, (4.0, False), id="the next best one settles"),
        pytest.param({5, 4, 3}, 3, (None, True), id="three do not settle"),
    ],
)
def test_the_next_best_one_counts_where_the_best_does_not_settle(noisy, asked, expected):
    screen = {drawing.candidate.candidate_id: verdict(drawing.candidate) for drawing in DRAWS}
    ranked = best_first(DRAWS, screen)
    calls = []

    def time(candidates, number):
        calls.append(number)
        return {
            c.candidate_id: verdict(c, status=Status.UNSTABLE if int(c.source.split()[-1]) in noisy else Status.CORRECT)
            for c in candidates
        }

    final = until_settled(list(ranked.values()), time)
    found = skill(PROBLEM, DRAWS, screen, ranked, final, num_samples=4)
    assert calls == list(range(asked))
    assert (found.speedup, found.is_unstable) == expected
    assert found.num_correct == 4


def test_one_that_the_screen_already_found_unstable_is_no_reference():
    screen = {d.candidate.candidate_id: verdict(d.candidate, status=Status.UNSTABLE) for d in DRAWS}
    assert best_first(DRAWS, screen) == {}
    assert skill(PROBLEM, DRAWS, screen, {}, {}, num_samples=4).is_unstable


def bouts(champion: Skill) -> list[Bout]:
    return [
        Bout(problem_id=f"level1/{number}", split=Split.HELD_OUT, challenger=FAST, champion=champion)
        for number in range(8)
    ]


def test_nobody_is_promoted_for_the_others_noise():
    noisy = bouts(UNSTABLE)
    judgement = decide(noisy, deciding_splits=("held_out",), alpha=0.05, min_share_correct=0.0, seed=0)
    assert judgement.decision is Decision.KEPT
    assert "8 left out because times on them never settled" in judgement.reason
    metrics = comparison_metrics(noisy, judgement)
    assert metrics["held_out/challenger/geomean"] == 1.0
    assert "left out of the speedups" in decision_page(judgement, metrics, {})
    assert bout_rows(noisy)[0]["champion"].startswith("unstable, ")
    known = decide(bouts(NOISY), deciding_splits=("held_out",), alpha=0.05, min_share_correct=0.0, seed=0)
    assert known.decision is Decision.PROMOTED
