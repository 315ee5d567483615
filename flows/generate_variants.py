"""Stage generate_variants: let a provider write candidates for every problem.

DVC runs this as ``python -m flows.generate_variants``; so can you.
"""

from collections import Counter
from itertools import islice

from flows.engine import Stage, progress, run_stage
from tasks.problems.catalogue import load_problems
from tasks.variants.builtin import BuiltinProvider
from tasks.variants.candidate import Candidate


def generate_variants(stage: Stage) -> None:
    """Write candidates.jsonl: at most max_per_problem distinct candidates a problem, none of them run yet."""
    params = stage.params.generate_variants
    problems = load_problems(stage.params.problems)
    provider = BuiltinProvider(params)
    candidates: list[Candidate] = []
    with (
        stage.tracked() as tracker,
        progress("generating", total=len(problems), unit="problem") as bar,
    ):
        for problem in problems.values():
            candidates += islice(provider.candidates(problem, seed=stage.params.seed), params.max_per_problem)
            bar.update()
        per_problem = Counter(candidate.problem_id for candidate in candidates)
        metrics = {
            "problems": len(problems),
            "candidates": len(candidates),
            "fewest_per_problem": min(per_problem[problem_id] for problem_id in problems),
            "rewrites_used": len({name for candidate in candidates for name in candidate.recipe}),
        }
        tracker.log_metrics(metrics)
    stage.write_rows("candidates.jsonl", (candidate.to_json() for candidate in candidates))
    stage.write_json("metrics.json", metrics)


if __name__ == "__main__":
    run_stage("generate_variants", generate_variants)
