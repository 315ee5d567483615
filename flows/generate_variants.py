"""Stage generate_variants: let providers write candidates for every problem.

DVC runs this as ``python -m flows.generate_variants``; so can you.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

from flows.engine import Stage, progress, run_stage, say
from flows.parts.accounting import accounted
from flows.parts.journal import Journal
from tasks.errors import ParamsError
from tasks.history.records import GENERATION
from tasks.params.generation import BUILTIN, COMPILER, OFFLINE
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Problem
from tasks.variants.builtin import BuiltinProvider
from tasks.variants.candidate import Candidate
from tasks.variants.compiler.provider import CompilerProvider
from tasks.variants.rewrites import rewrites_for

if TYPE_CHECKING:
    from flows.parts.trials import Trial


def generate_variants(stage: Stage) -> None:
    """Write candidates.jsonl (distinct texts), answers.jsonl (language models', word for word) and verdicts.jsonl.

    Verdicts are those that decided how many answers were bought; other candidates have none yet.
    """
    params = stage.params.generate_variants
    if COMPILER in params.providers and stage.params.judge.device != "cpu":
        raise ParamsError(
            f"generate_variants.providers names {COMPILER}, which writes C++ for the CPU: leave it out where "
            f"judge.device is {stage.params.judge.device}"
        )
    problems = load_problems(stage.params.problems)
    with accounted(stage, problems) as (tracker, expenses):
        trials: Sequence[Trial] = ()
        metrics: dict[str, Any] = {}
        if params.generators_in_use:
            from flows.parts.buying import buy_variants

            bought = buy_variants(stage, problems, expenses)
            trials, metrics = bought.trials, bought.metrics()
        written: list[Candidate] = []
        if not set(params.providers).isdisjoint(OFFLINE):
            with expenses.metered(GENERATION):
                written += _rewritten(stage, problems) if BUILTIN in params.providers else []
                written += _compiled(stage, problems) if COMPILER in params.providers else []
        candidates = _distinct([*written, *(trial.candidate for trial in trials if trial.candidate is not None)])
        metrics |= _counts(candidates, problems)
        tracker.log_metrics(metrics)
        stage.write_rows("candidates.jsonl", (candidate.to_json() for candidate in candidates))
        stage.write_rows("answers.jsonl", (trial.to_json() for trial in trials if trial.purchase.is_settled))
        verdicts = {trial.verdict.candidate_id: trial.verdict for trial in trials if trial.verdict is not None}
        stage.write_rows("verdicts.jsonl", (verdict.to_json() for verdict in verdicts.values()))
        stage.write_json("metrics.json", metrics)


def _rewritten(stage: Stage, problems: Mapping[str, Problem]) -> list[Candidate]:
    """At most max_per_problem distinct candidates a problem of the built-in provider, none of them run yet."""
    params = stage.params.generate_variants
    provider = BuiltinProvider(params, rewrites=rewrites_for(stage.params.judge.device))
    candidates: list[Candidate] = []
    with progress("generating", total=len(problems), unit="problem") as bar:
        for problem in problems.values():
            candidates += islice(provider.candidates(problem, seed=stage.params.seed), params.max_per_problem)
            bar.update()
    return candidates


def _compiled(stage: Stage, problems: Mapping[str, Problem]) -> list[Candidate]:
    """At most as many of the compiler's, with a word on the problems that it has nothing for.

    A problem takes ten seconds, so each is journalled: a kill costs one.
    """
    provider = CompilerProvider()
    with (
        closing(Journal(stage.folder / "compiled.jsonl")) as journal,
        progress("compiling", total=len(problems), unit="problem") as bar,
    ):
        rows = {row["problem_id"]: row for row in journal.rows}
        for problem_id, problem in problems.items():
            if problem_id not in rows:
                found = provider.candidates(problem, seed=stage.params.seed)
                kept = [
                    candidate.to_json() for candidate in islice(found, stage.params.generate_variants.max_per_problem)
                ]
                why = next(iter(provider.refused[problem_id].values()), "")
                rows[problem_id] = {"problem_id": problem_id, "candidates": kept, "why_not": "" if kept else why}
                if kept:  # what failed may have lacked a compiler that is there the next time
                    journal.append([rows[problem_id]])
            bar.update()
    reasons = Counter(row["why_not"] for row in rows.values() if not row["candidates"])
    for reason, count in reasons.items():
        example = next(problem_id for problem_id, row in rows.items() if row["why_not"] == reason)
        say(f"warning: nothing compiled for {count} problem(s), such as {example}: {reason}")
    return [Candidate.from_json(each) for problem_id in problems for each in rows[problem_id]["candidates"]]


def _distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Each text once, as who came first's."""
    distinct: dict[str, Candidate] = {}
    for candidate in candidates:
        distinct.setdefault(candidate.candidate_id, candidate)
    return list(distinct.values())


def _counts(candidates: Sequence[Candidate], problems: Mapping[str, Problem]) -> dict[str, int]:
    per_problem = Counter(candidate.problem_id for candidate in candidates)
    return {
        "problems": len(problems),
        "candidates": per_problem.total(),
        "rewrites_used": len({name for candidate in candidates for name in candidate.recipe}),
        "fewest_per_problem": min(per_problem[problem_id] for problem_id in problems),
    }


if __name__ == "__main__":
    run_stage("generate_variants", generate_variants)
