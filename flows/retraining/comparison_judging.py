"""What challenger and champion wrote, judged: everything by the screen, and the best of each timed again."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from flows.engine import Stage
from flows.parts.judging import Court, court
from flows.parts.sampling import Draw, as_samples
from tasks.judge.batch import changed
from tasks.judge.verdict import Status, Verdict
from tasks.problems.problem import Problem
from tasks.report.comparison import Skill
from tasks.variants.candidate import Candidate

BATCH = 64
"""Candidates judged between two words about how far it is."""
TRIES = 3
"""Candidates of one policy for one problem that are timed again, until the times of one settle."""

OnProgress = Callable[[float, str], None]
"""Told what share is done, from 0 to 1, and what is being done."""


def screened(
    stage: Stage, problems: Mapping[str, Problem], drawn: Mapping[str, Sequence[Draw]], on_progress: OnProgress
) -> dict[str, Verdict]:
    """A verdict for every text that either wrote, by candidate."""
    candidates = _distinct([drawing.candidate for draws in drawn.values() for drawing in draws])
    with court(stage, problems) as judges:
        judges.recover(candidates)
        verdicts = _judged(judges, candidates, on_progress, "judging what they wrote", share=(0.2, 0.6))
        for step, (role, draws) in enumerate(drawn.items(), start=1):
            judges.record_samples(as_samples(draws, policy=role, step=step))
    return verdicts


def best_first(draws: Sequence[Draw], verdicts: Mapping[str, Verdict]) -> dict[str, list[Candidate]]:
    """The fastest correct candidates of each problem that has any, at most TRIES of them."""
    correct: dict[str, dict[str, Candidate]] = defaultdict(dict)
    for drawing in draws:
        if verdicts[drawing.candidate.candidate_id].is_correct:
            correct[drawing.candidate.problem_id][drawing.candidate.candidate_id] = drawing.candidate
    return {
        problem_id: sorted(found.values(), key=lambda candidate: -(verdicts[candidate.candidate_id].speedup or 0.0))[
            :TRIES
        ]
        for problem_id, found in correct.items()
    }


def timed_again(
    stage: Stage,
    problems: Mapping[str, Problem],
    ranked: Mapping[str, Mapping[str, Sequence[Candidate]]],
    on_progress: OnProgress,
) -> dict[str, Verdict]:
    """A fresh verdict on the best candidates for the problems that decide, by candidate.

    Args:
        ranked: best first, by role and problem.
    """
    params = stage.params
    waiting = [
        candidates
        for by_problem in ranked.values()
        for problem_id, candidates in by_problem.items()
        if problems[problem_id].split in params.retrain.deciding_splits
    ]
    if not waiting:
        return {}
    judge = changed(params.judge, tier=params.retrain.tier)
    again = replace(stage, params=replace(params, judge=judge), run_id=f"{stage.run_id}-best")  # type: ignore[type-var]
    with court(again, problems, journal="best.jsonl", workers=1) as judges:
        judges.recover(_distinct([candidate for candidates in waiting for candidate in candidates]))

        def time(candidates: Sequence[Candidate], number: int) -> dict[str, Verdict]:
            share, words = (1 - 0.4 / 2**number, 1 - 0.2 / 2**number), "timing the best again"
            return _judged(judges, candidates, on_progress, words, share=share, batch=judges.workers)

        return until_settled(waiting, time)


def until_settled(
    waiting: Sequence[Sequence[Candidate]], time: Callable[[Sequence[Candidate], int], Mapping[str, Verdict]]
) -> dict[str, Verdict]:
    """Verdicts on the first candidate of each list, and on the next one of those whose times did not settle.

    An unstable kernel that counted as the reference would be held against the policy that writes the faster ones, whose
    times are shorter and so noisier.

    Args:
        time: judges candidates; told how often it was called before.
    """
    final: dict[str, Verdict] = {}
    number = 0
    while waiting:
        final |= time(_distinct([candidates[number] for candidates in waiting]), number)
        unstable = [c for c in waiting if final[c[number].candidate_id].status is Status.UNSTABLE]
        number += 1
        waiting = [candidates for candidates in unstable if len(candidates) > number]
    return final


def skill(
    problem_id: str,
    draws: Sequence[Draw],
    verdicts: Mapping[str, Verdict],
    ranked: Mapping[str, Sequence[Candidate]],
    final: Mapping[str, Verdict],
    *,
    num_samples: int,
) -> Skill:
    """What one policy came to on one problem.

    Args:
        verdicts: of the screen, by candidate.
        ranked: this policy's candidates that could be timed again, best first, by problem.
        final: verdicts of those that were.
    """
    own = [verdicts[d.candidate.candidate_id] for d in draws if d.candidate.problem_id == problem_id]
    candidates = ranked.get(problem_id, ())
    tried = [final[c.candidate_id] for c in candidates if c.candidate_id in final]
    tried = tried or [verdicts[c.candidate_id] for c in candidates[:1]]
    settled = next((verdict for verdict in tried if verdict.status is not Status.UNSTABLE), None)
    return Skill(
        num_samples=num_samples,
        # Unsettled times are no fault of what was written: it passed every trial.
        num_correct=sum(verdict.status in (Status.CORRECT, Status.UNSTABLE) for verdict in own),
        speedup=settled.speedup if settled else None,
        is_unstable=settled is None and any(verdict.status is Status.UNSTABLE for verdict in tried or own),
    )


def _judged(
    judges: Court,
    candidates: Sequence[Candidate],
    on_progress: OnProgress,
    words: str,
    *,
    share: tuple[float, float],
    batch: int = BATCH,
) -> dict[str, Verdict]:
    low, high = share
    verdicts: dict[str, Verdict] = {}
    for start in range(0, len(candidates), batch):
        on_progress(low + (high - low) * start / len(candidates), f"{words}: {start} of {len(candidates)}")
        for verdict in judges.judge(candidates[start : start + batch], desc=words):
            verdicts[verdict.candidate_id] = verdict
    return verdicts


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    return list({candidate.candidate_id: candidate for candidate in reversed(candidates)}.values())
