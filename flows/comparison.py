"""Challenger and champion side by side: the same prompts and seeds, the same judge, the best of each timed again.

A comparison is named by all that its result depends on. What a killed one leaves in its folder the next one continues,
and one that was finished writes and judges nothing again.
"""

import hashlib
import json
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flows.accounting import Expenses
from flows.engine import WORK, Stage
from flows.judging import Court, court
from flows.recording import Recorder
from flows.runs import run_of
from flows.sampling import Draw, as_samples, build_requests, draw
from tasks.errors import PolicyError
from tasks.judge.batch import changed
from tasks.judge.verdict import Verdict
from tasks.params import Params, as_document
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Problem
from tasks.report.comparison import Bout, Skill
from tasks.variants.candidate import Candidate

CHALLENGER, CHAMPION = "challenger", "champion"
FOLDER = WORK / "retrain" / "comparisons"
SECTIONS = ("seed", "problems", "judge", "policy", "retrain")
BATCH = 64
"""Candidates judged between two words about how far it is."""

OnProgress = Callable[[float, str], None]
"""Told what share is done, from 0 to 1, and what is being done."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison(Stage):
    """One comparison, with the ways of a stage; DVC does not know it."""

    policies: Mapping[str, Path]
    """By role: CHALLENGER, and CHAMPION where there is one."""

    @property
    def sections(self) -> dict[str, Any]:
        document = as_document(self.params)
        return {section: document[section] for section in SECTIONS}


def begin_comparison(params: Params, policies: Mapping[str, Path], digests: Mapping[str, str]) -> Comparison:
    """The comparison of these policies under these params; one that was begun before is continued.

    Args:
        digests: of the policies' files, by role.
    """
    problems = load_problems(params.problems)
    asked = [as_document(params)[section] for section in SECTIONS]
    known = {problem.problem_id: [problem.problem_hash, problem.split] for problem in problems.values()}
    text = json.dumps([asked, dict(digests), known], sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    folder = FOLDER / key
    folder.mkdir(parents=True, exist_ok=True)
    for other in FOLDER.iterdir():
        if other != folder:
            shutil.rmtree(other)
    begun = folder / "begun"
    if not begun.exists():
        begun.touch()
    started_at = begun.stat().st_mtime
    return Comparison(
        name="retrain",
        params=params,
        key=key,
        folder=folder,
        run_id=f"retrain-{key}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime(started_at))}",
        started_at=started_at,
        policies=policies,
    )


def compare_policies(comparison: Comparison, *, on_progress: OnProgress) -> list[Bout]:
    """Both policies on every problem, in order of the problems.

    No prompt shows exemplars, so that both policies answer the same ones whatever their tokenizers make of them. The
    best candidates for the problems that decide are timed at the tier of retrain.tier, one at a time on each device;
    for the others, which are only reported, the times of the screen stand.

    Args:
        on_progress: called between the steps and every few judgements.
    """
    problems = load_problems(comparison.params.problems)
    expenses = Expenses(comparison.folder / "costs.jsonl")
    try:
        drawn = {}
        for number, role in enumerate(comparison.policies):
            on_progress(0.1 * number, f"the {role} writes")
            drawn[role] = _drawn(comparison, role, problems, expenses)
    finally:
        recorder = Recorder(run_of(comparison), problems)
        recorder.account(expenses.costs, [])
        recorder.close()
        expenses.close()
    verdicts = _screened(comparison, problems, drawn, on_progress)
    best = {role: _best(draws, verdicts) for role, draws in drawn.items()}
    final = _timed_again(comparison, problems, best, on_progress)
    on_progress(1.0, "compared")
    num_samples = comparison.params.retrain.samples_per_problem
    skills = {
        role: {name: _skill(name, draws, verdicts, best[role], final, num_samples=num_samples) for name in problems}
        for role, draws in drawn.items()
    }
    return [
        Bout(
            problem_id=problem.problem_id,
            split=problem.split,
            challenger=skills[CHALLENGER][problem.problem_id],
            champion=skills[CHAMPION][problem.problem_id] if CHAMPION in skills else None,
        )
        for problem in problems.values()
    ]


def _drawn(comparison: Comparison, role: str, problems: Mapping[str, Problem], expenses: Expenses) -> Sequence[Draw]:
    from tasks.training.policy import load_policy

    params = comparison.params
    policy = load_policy(comparison.policies[role], params.policy)
    requests = []
    for problem in problems.values():
        try:
            requests += build_requests(
                policy,
                [problem],
                {},
                params.exemplars,
                each=params.retrain.samples_per_problem,
                exemplar_share=0.0,
                seed=params.seed,
            )
        except PolicyError:
            continue  # too long for this policy, which so gets nothing right on it
    return draw(
        comparison,
        policy,
        requests,
        name=role,
        origin=role,
        temperature=params.retrain.temperature,
        expenses=expenses,
    )


def _screened(
    comparison: Comparison,
    problems: Mapping[str, Problem],
    drawn: Mapping[str, Sequence[Draw]],
    on_progress: OnProgress,
) -> dict[str, Verdict]:
    """A verdict for every text that either wrote, by candidate."""
    candidates = _distinct([drawing.candidate for draws in drawn.values() for drawing in draws])
    with court(comparison, problems) as judges:
        judges.recover(candidates)
        verdicts = _judged(judges, candidates, on_progress, "judging what they wrote", share=(0.2, 0.6))
        for step, (role, draws) in enumerate(drawn.items(), start=1):
            judges.record_samples(as_samples(draws, policy=role, step=step))
    return verdicts


def _timed_again(
    comparison: Comparison,
    problems: Mapping[str, Problem],
    best: Mapping[str, Mapping[str, Candidate]],
    on_progress: OnProgress,
) -> dict[str, Verdict]:
    """A fresh verdict on the best candidates for the problems that decide, by candidate."""
    params = comparison.params
    candidates = _distinct(
        [
            candidate
            for by_problem in best.values()
            for problem_id, candidate in by_problem.items()
            if problems[problem_id].split in params.retrain.deciding_splits
        ]
    )
    if not candidates:
        return {}
    judge = changed(params.judge, tier=params.retrain.tier)
    again = replace(comparison, params=replace(params, judge=judge), run_id=f"{comparison.run_id}-best")  # type: ignore[type-var]
    with court(again, problems, journal="best.jsonl", workers=1) as judges:
        judges.recover(candidates)
        return _judged(judges, candidates, on_progress, "timing the best again", share=(0.6, 1.0), batch=judges.workers)


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


def _best(draws: Sequence[Draw], verdicts: Mapping[str, Verdict]) -> dict[str, Candidate]:
    """The fastest correct candidate of each problem that has one."""
    correct: dict[str, dict[str, Candidate]] = defaultdict(dict)
    for drawing in draws:
        if verdicts[drawing.candidate.candidate_id].is_correct:
            correct[drawing.candidate.problem_id][drawing.candidate.candidate_id] = drawing.candidate
    return {
        problem_id: max(found.values(), key=lambda candidate: verdicts[candidate.candidate_id].speedup or 0.0)
        for problem_id, found in correct.items()
    }


def _skill(
    problem_id: str,
    draws: Sequence[Draw],
    verdicts: Mapping[str, Verdict],
    best: Mapping[str, Candidate],
    final: Mapping[str, Verdict],
    *,
    num_samples: int,
) -> Skill:
    own = [drawing.candidate.candidate_id for drawing in draws if drawing.candidate.problem_id == problem_id]
    chosen = best.get(problem_id)
    found = None if chosen is None else final.get(chosen.candidate_id, verdicts[chosen.candidate_id])
    return Skill(
        num_samples=num_samples,
        num_correct=sum(verdicts[candidate_id].is_correct for candidate_id in own),
        speedup=found.speedup if found else None,
    )


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    return list({candidate.candidate_id: candidate for candidate in reversed(candidates)}.values())
