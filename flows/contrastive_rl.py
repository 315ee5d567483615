"""Stage contrastive_rl: GRPO on prompts that show earlier kernels with their measured speed.

DVC runs this as ``python -m flows.contrastive_rl``; so can you.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from flows.engine import DATA, Stage, progress, run_stage, say
from flows.parts.accounting import accounted
from flows.parts.checking import inquiry
from flows.parts.drawn import Drawn
from flows.parts.judging import Court, court
from flows.parts.launching import require_apart, trainers
from flows.parts.records import read_candidates, read_verdicts
from tasks.history.exemplars import ExemplarPool
from tasks.history.islands import Islands
from tasks.history.records import TRAINING, Cost, Sample
from tasks.judge.verdict import Verdict
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Split
from tasks.variants.candidate import Candidate

if TYPE_CHECKING:
    from tasks.training.policy import Policy
    from tasks.training.rollouts import Rollout

WATCHED = ("reward", "correct", "speedup")


def contrastive_rl(stage: Stage) -> None:
    """Write the policy, every rollout's candidate and verdict, and a curve with one row a step."""
    from tasks.training.checkpoints import checkpointed_steps
    from tasks.training.collapse import CollapseWatch
    from tasks.training.grpo import train_grpo
    from tasks.training.policy import can_write, load_policy, require_room

    params = stage.params
    require_apart(params)
    problems = load_problems(params.problems)
    train = {problem.problem_id: problem for problem in problems.values() if problem.split is Split.TRAIN}
    earlier = [c for s in ("generate_variants", "self_supervised") for c in read_candidates(s)]
    known = read_verdicts("filter_variants", "self_supervised")
    checkpoints = stage.folder / "checkpoints"
    updates = params.contrastive_rl.updates_per_step
    drawn = Drawn(stage.folder, done_steps=checkpointed_steps(checkpoints, updates=updates))
    watch = CollapseWatch(params.contrastive_rl)
    with (
        accounted(stage, problems) as (tracker, expenses),
        court(stage, problems, known=known) as judges,
        inquiry(stage, problems, params.checker) as doubts,
        trainers(params, folder=stage.folder) as crew,
        progress("contrastive RL", total=params.contrastive_rl.steps, unit="step") as bar,
    ):
        judges.recover(drawn.candidates.values())
        policy = load_policy(DATA / "self_supervised" / "policy", params.policy)
        require_room(policy, train.values())
        before = [c for c in earlier if c.problem_id in train and can_write(policy, c.source)]
        # On the machine that they were found on, all of these are known.
        judges.judge(list({c.candidate_id: c for c in drawn.kept}.values()), desc="judging what earlier steps found")
        comparable = _comparable([*known, *judges.own.values()], judges, shown=before)
        sound = [verdict for verdict in comparable if not doubts.withholds(verdict)]
        pool, islands = _found_so_far(stage, before, drawn, sound)

        def judge(rollouts: Sequence[Candidate]) -> Sequence[Verdict]:
            drawn.note_texts(rollouts)
            verdicts = judges.judge(rollouts)
            doubts.ask_about_jumps(rollouts, verdicts, pool)
            return verdicts

        def on_rollouts(step: int, rollouts: Sequence["Rollout"], cost: Cost) -> None:
            drawn.note_step(step, rollouts)
            expenses.note(cost)
            judges.record_samples(_as_samples(rollouts, step, params.contrastive_rl.temperature))
            meter.skip()  # what was done since the last step is generation and judging

        def on_step(step: int, values: dict[str, float]) -> None:
            meter.lap()
            bar.update(step - bar.n)
            bar.set_postfix({name: f"{values[name]:.2f}" for name in WATCHED if name in values})
            for warning in watch.note(step, values):
                say(f"warning: {warning}")
            tracker.log_metrics({**values, "collapsed": watch.is_collapsed}, step=step)

        with expenses.metered(TRAINING) as meter:
            curve = crew.train(
                train_grpo,
                policy,
                list(train.values()),
                pool,
                judge,
                params.contrastive_rl,
                exemplars=params.exemplars,
                checkpoints=checkpoints,
                seed=params.seed,
                on_step=on_step,
                on_rollouts=on_rollouts,
                is_withheld=doubts.withholds,
                islands=islands,
                keeps_scale=not judges.has_moved,
            )
        verdicts = judges.judge(list(drawn.candidates.values()))
        drawn.close()
        _write(stage, policy, drawn.candidates.values(), verdicts, curve)


def _comparable(verdicts: Sequence[Verdict], judges: Court, *, shown: Iterable[Candidate]) -> list[Verdict]:
    """The verdicts whose speedups may stand in one prompt with those that these judges will find.

    The others are not reached again: that would take what filter_variants and self_supervised took for judging. Their
    candidates are what the pool lacks at first, which is said, and any of them that the policy writes is judged here.

    Args:
        shown: candidates of earlier stages that the pool would hold.
    """
    comparable = [verdict for verdict in verdicts if judges.is_comparable(verdict)]
    correct = {verdict.candidate_id for verdict in verdicts if verdict.is_correct}
    lacking = correct & {c.candidate_id for c in shown} - {verdict.candidate_id for verdict in comparable}
    if lacking:
        say(
            f"{len(lacking)} correct candidates are no exemplars in this run: they were judged on another device, by "
            f"another protocol or with other versions, and their speedups cannot be compared with those found here; "
            f"`dvc repro --force contrastive_rl` judges and trains all of it here, from generate_variants on"
        )
    return comparable


def _found_so_far(
    stage: Stage, before: Sequence[Candidate], drawn: Drawn, verdicts: Sequence[Verdict]
) -> tuple[ExemplarPool, Islands | None]:
    """The pool and the islands as they were after the newest checkpoint, made of candidates and what is known of them.

    Args:
        before: candidates of earlier stages.
    """
    from tasks.training.grpo import new_islands

    params = stage.params.contrastive_rl
    pool = ExemplarPool.from_verdicts([*before, *drawn.kept], verdicts)
    islands = new_islands(ExemplarPool.from_verdicts(before, verdicts), params, seed=stage.params.seed)
    if islands:
        drawn.settle(islands, pool, group_size=params.group_size)
    return pool, islands


def _write(
    stage: Stage,
    policy: "Policy",
    candidates: Iterable[Candidate],
    verdicts: Iterable[Verdict],
    curve: Sequence[dict[str, float]],
) -> None:
    from tasks.training.policy import save_policy

    save_policy(policy, stage.outputs / "policy")
    stage.write_rows("candidates.jsonl", (candidate.to_json() for candidate in candidates))
    stage.write_rows("verdicts.jsonl", (verdict.to_json() for verdict in verdicts))
    stage.write_csv("curve.csv", curve)
    stage.write_json("metrics.json", _last_means(curve))


def _last_means(curve: Sequence[dict[str, float]], steps: int = 10) -> dict[str, float]:
    """Each value's mean over the last steps: a single one sees a few problems only."""
    last = curve[-steps:]
    names = dict.fromkeys(name for row in last for name in row if name != "step")  # not every step has all of them
    return {name: round(fmean(row[name] for row in last if name in row), 4) for name in names}


def _as_samples(rollouts: Sequence["Rollout"], step: int, temperature: float) -> list[Sample]:
    return [
        Sample(
            problem_id=rollout.candidate.problem_id,
            candidate_id=rollout.candidate.candidate_id,
            prompt=rollout.completion.prompt,
            exemplar_ids=rollout.completion.exemplar_ids,
            completion=rollout.completion.text,
            policy="contrastive_rl",
            temperature=temperature,
            step=step,
            number=number,
        )
        for number, rollout in enumerate(rollouts)
    ]


if __name__ == "__main__":
    run_stage("contrastive_rl", contrastive_rl)
