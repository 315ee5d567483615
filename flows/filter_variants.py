"""Stage filter_variants: run every generated candidate, keep every verdict, and choose what will be taught.

DVC runs this as ``python -m flows.filter_variants``; so can you.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

from flows.engine import DATA, Stage, run_stage, say
from flows.parts.accounting import accounted
from flows.parts.journal import read_records
from flows.parts.judging import court
from flows.parts.records import read_verdicts
from tasks.judge.verdict import Status, Verdict
from tasks.params import FilterVariantsParams
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Problem, Split
from tasks.variants.candidate import Candidate


def filter_variants(stage: Stage) -> None:
    """Write verdicts.jsonl (all of them) and taught.jsonl (the candidates that sft learns from)."""
    problems = load_problems(stage.params.problems)
    candidates = read_records(DATA / "generate_variants" / "candidates.jsonl", Candidate.from_json)
    with (
        accounted(stage, problems) as (tracker, _),
        court(stage, problems, known=read_verdicts("generate_variants")) as judges,
    ):
        judges.recover(candidates)
        verdicts = judges.judge(candidates, desc="judging")
        taught = choose_taught(candidates, verdicts, problems, stage.params.filter_variants)
        warn_of_bad_problems(verdicts)
        statuses = Counter(verdict.status for verdict in verdicts)
        metrics: dict[str, float] = {
            "candidates": len(candidates),
            "correct": statuses[Status.CORRECT],
            "share_correct": round(statuses[Status.CORRECT] / max(len(candidates), 1), 4),
            "taught": len(taught),
            **{f"status_{status}": count for status, count in sorted(statuses.items())},
        }
        tracker.log_metrics(metrics)
        stage.write_rows("verdicts.jsonl", (verdict.to_json() for verdict in verdicts))
        stage.write_rows("taught.jsonl", (candidate.to_json() | {"speedup": speedup} for candidate, speedup in taught))
        stage.write_json("metrics.json", metrics)


def warn_of_bad_problems(verdicts: Sequence[Verdict]) -> None:
    """Say which problems nobody can be judged on, and why: they stay in the run, but nothing is learnt on them."""
    reasons = {verdict.problem_id: verdict.detail for verdict in verdicts if verdict.status is Status.BAD_PROBLEM}
    for problem_id, reason in sorted(reasons.items()):
        say(f"warning: {problem_id} cannot be judged: {reason.strip()}")


def choose_taught(
    candidates: Sequence[Candidate],
    verdicts: Sequence[Verdict],
    problems: Mapping[str, Problem],
    params: FilterVariantsParams,
) -> list[tuple[Candidate, float]]:
    """The fastest correct candidates of each train problem, with their speedups, fastest first within a problem."""
    correct = [
        (candidate, verdict.speedup)
        for candidate, verdict in zip(candidates, verdicts, strict=True)
        if verdict.speedup is not None
        and verdict.speedup >= params.min_speedup
        and problems[candidate.problem_id].split is Split.TRAIN
    ]
    correct.sort(key=lambda pair: (pair[0].problem_id, -pair[1]))
    return [
        pair
        for _, group in groupby(correct, key=lambda pair: pair[0].problem_id)
        for pair in list(group)[: params.max_per_problem]
    ]


if __name__ == "__main__":
    run_stage("filter_variants", filter_variants)
