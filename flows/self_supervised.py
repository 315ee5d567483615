"""Stage self_supervised: sample from the policy, run what it wrote, train it on its own successes; again.

Only successes are learned from, and nothing is pushed down: while most samples still fail, a baseline would turn them
into many negative updates. Speed is ignored: any of a problem's successes is taught as often as any other (CUDA-L1,
arXiv:2507.14111, stage 2).

DVC runs this as ``python -m flows.self_supervised``; so can you.
"""

import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flows.engine import DATA, Stage, progress, run_stage
from flows.parts.accounting import Expenses, accounted
from flows.parts.judging import Court, court
from flows.parts.launching import Trainers, say_unless_apart, trainers
from flows.parts.records import exemplars_of, read_taught, read_verdicts, say_left_out
from flows.parts.sampling import as_samples, build_requests, draw
from tasks.history.records import TRAINING
from tasks.judge.verdict import Verdict
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Problem, Split
from tasks.tracking import Tracker
from tasks.variants.candidate import Candidate
from tasks.variants.prompts import Exemplar

if TYPE_CHECKING:
    from tasks.training.policy import Policy


def self_supervised(stage: Stage) -> None:
    """Write the policy, every sample's candidate and verdict, and a curve with one row (step) an iteration."""
    from tasks.training.policy import load_policy, save_policy, writable

    params = stage.params
    say_unless_apart(params)
    problems = load_problems(params.problems)
    curve: list[dict[str, Any]] = []
    judged: dict[str, tuple[Candidate, Verdict]] = {}
    with (
        accounted(stage, problems) as (tracker, expenses),
        court(stage, problems, known=read_verdicts("filter_variants")) as judges,
        trainers(params, folder=stage.folder) as crew,
    ):
        policy = load_policy(DATA / "sft" / "policy", params.policy)
        taught = writable(policy, read_taught())
        for iteration in range(1, params.self_supervised.iterations + 1):
            candidates, verdicts = _sample_and_judge(stage, policy, problems, taught, judges, expenses, iteration)
            judged |= {c.candidate_id: (c, v) for c, v in zip(candidates, verdicts, strict=True)}
            curve.append(_summary(iteration, verdicts))
            tracker.log_metrics(curve[-1], step=iteration)
            trained = stage.folder / f"policy-{iteration}"
            if not trained.exists():
                # Several policies' worth of disk; the policy that came of them is whole.
                shutil.rmtree(stage.folder / f"checkpoints-{iteration - 1}", ignore_errors=True)
                successes = writable(policy, _by_problem(candidates, verdicts))
                _learn(stage, crew, policy, problems, taught, successes, iteration, tracker, expenses)
                save_policy(policy, trained)
            policy = load_policy(trained, params.policy)
        save_policy(policy, stage.outputs / "policy")
        stage.write_rows("candidates.jsonl", (candidate.to_json() for candidate, _ in judged.values()))
        stage.write_rows("verdicts.jsonl", (verdict.to_json() for _, verdict in judged.values()))
        stage.write_csv("curve.csv", curve)
        stage.write_json("metrics.json", {f"iteration_{row['step']}": row for row in curve})


def _sample_and_judge(
    stage: Stage,
    policy: "Policy",
    problems: Mapping[str, Problem],
    taught: Mapping[str, Sequence[Exemplar]],
    judges: Court,
    expenses: Expenses,
    iteration: int,
) -> tuple[list[Candidate], list[Verdict]]:
    from tasks.training.loading import on_gpu

    params = stage.params.self_supervised
    requests = build_requests(
        policy,
        [problem for problem in problems.values() if problem.split is Split.TRAIN],
        taught,
        stage.params.exemplars,
        each=params.samples_per_problem,
        exemplar_share=params.exemplar_share,
        seed=_seed(stage, iteration),
    )
    with on_gpu(policy.model):
        draws = draw(
            stage,
            policy,
            requests,
            name=f"iteration-{iteration}",
            origin=stage.name,
            temperature=params.temperature,
            seed=_seed(stage, iteration),
            expenses=expenses,
        )
    candidates = [drawn.candidate for drawn in draws]
    judges.recover(candidates)
    verdicts = judges.judge(candidates, desc=f"judging iteration {iteration}")
    judges.record_samples(as_samples(draws, policy=stage.name, step=iteration))
    return candidates, verdicts


def _learn(
    stage: Stage,
    crew: Trainers,
    policy: "Policy",
    problems: Mapping[str, Problem],
    taught: Mapping[str, Sequence[Exemplar]],
    successes: Mapping[str, Sequence[Exemplar]],
    iteration: int,
    tracker: Tracker,
    expenses: Expenses,
) -> None:
    """Train on the successes, with a share of the filtered variants against forgetting what was not sampled.

    Of the successes all are alike; the variants are drawn as in sft, the faster a little more often.
    """
    from tasks.training.examples import sft_examples
    from tasks.training.sft import train_sft

    params = stage.params.self_supervised
    count = params.steps * params.batch_size
    replayed = round(count * params.replay_share) if successes else count
    train = [problem for problem in problems.values() if problem.split is Split.TRAIN]
    examples = [
        example
        for source, number, weighs_speed, invented_share in (
            (successes, count - replayed, False, 0.0),
            (taught, replayed, True, stage.params.sft.invented_share),
        )
        if number
        for example in sft_examples(
            [problem for problem in train if source.get(problem.problem_id)],
            source,
            policy=policy,
            count=number,
            weighs_speed=weighs_speed,
            exemplar_share=params.exemplar_share,
            renamed_share=stage.params.sft.renamed_share,
            invented_share=invented_share,
            num_exemplars=stage.params.exemplars.count,
            seed=_seed(stage, iteration),
        )
    ]
    say_left_out(count - len(examples), asked=count)
    with (
        progress(f"training iteration {iteration}", total=params.steps, unit="step") as bar,
        expenses.metered(TRAINING) as meter,
    ):

        def on_step(step: int, values: dict[str, float]) -> None:
            meter.lap()
            bar.update(step - bar.n)
            tracker.log_metrics(values, step=(iteration - 1) * params.steps + step)

        crew.train(
            train_sft,
            policy,
            examples,
            steps=params.steps,
            batch_size=params.batch_size,
            learning_rate=params.learning_rate,
            checkpoints=stage.folder / f"checkpoints-{iteration}",
            seed=_seed(stage, iteration),
            micro_batch_size=stage.params.sft.micro_batch_size,
            packing=stage.params.sft.packing,
            on_step=on_step,
        )


def _seed(stage: Stage, iteration: int) -> int:
    """Of one iteration; seed 0's second iteration must not be seed 1's first. It is of 32 bits, as numpy wants it."""
    return (stage.params.seed * 1009 + iteration) % (1 << 32)


def _by_problem(candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> dict[str, list[Exemplar]]:
    """Each distinct success once, so that what the policy already writes most is not taught most."""
    successes: dict[str, dict[str, Exemplar]] = defaultdict(dict)
    for problem_id, exemplar in exemplars_of(candidates, verdicts):
        successes[problem_id][exemplar.candidate_id] = exemplar
    return {problem_id: list(exemplars.values()) for problem_id, exemplars in successes.items()}


def _summary(iteration: int, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    count = max(len(verdicts), 1)
    return {
        "step": iteration,
        "samples": len(verdicts),
        "share_correct": round(sum(verdict.is_correct for verdict in verdicts) / count, 4),
        "share_distinct": round(len({verdict.candidate_id for verdict in verdicts}) / count, 4),
    }


if __name__ == "__main__":
    run_stage("self_supervised", self_supervised)
