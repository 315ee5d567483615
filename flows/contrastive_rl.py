"""Stage contrastive_rl: GRPO on prompts that show earlier kernels with their measured speed.

DVC runs this as ``python -m flows.contrastive_rl``; so can you.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from flows.accounting import accounted
from flows.checking import inquiry
from flows.engine import DATA, Stage, progress, run_stage
from flows.journal import Journal
from flows.judging import court
from flows.launching import trainers
from flows.records import read_candidates, read_verdicts
from tasks.history.exemplars import ExemplarPool
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
    from tasks.training.grpo import train_grpo
    from tasks.training.policy import can_write, load_policy

    params = stage.params
    problems = load_problems(params.problems)
    train = {problem.problem_id: problem for problem in problems.values() if problem.split is Split.TRAIN}
    earlier = [c for s in ("generate_variants", "self_supervised") for c in read_candidates(s)]
    known = read_verdicts("filter_variants", "self_supervised")
    checkpoints = stage.folder / "checkpoints"
    drawn = Drawn(stage, done_steps=checkpointed_steps(checkpoints))
    with (
        accounted(stage, problems) as (tracker, expenses),
        court(stage, problems, known=known) as judges,
        inquiry(stage, problems, params.checker) as doubts,
        trainers(params, folder=stage.folder) as crew,
        progress("contrastive RL", total=params.contrastive_rl.steps, unit="step") as bar,
    ):
        judges.recover(drawn.candidates.values())
        policy = load_policy(DATA / "self_supervised" / "policy", params.policy)
        pool = ExemplarPool.from_verdicts(
            (c for c in [*earlier, *drawn.kept] if c.problem_id in train and can_write(policy, c.source)),
            [verdict for verdict in [*known, *judges.own.values()] if not doubts.withholds(verdict)],
        )

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
            tracker.log_metrics(values, step=step)

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
            )
        verdicts = judges.judge(list(drawn.candidates.values()))
        drawn.close()
        _write(stage, policy, drawn.candidates.values(), verdicts, curve)


class Drawn:
    """The journals of what the policy wrote: every text once, and which step drew which."""

    def __init__(self, stage: Stage, *, done_steps: int) -> None:
        """Take up the journals of a run that was killed after its newest checkpoint.

        Args:
            done_steps: later ones are drawn again, and what they found must not be in the pool before that.
        """
        self._texts = Journal(stage.folder / "candidates.jsonl")
        self._steps = Journal(stage.folder / "rollouts.jsonl")
        self._steps.keep(lambda row: row["step"] <= done_steps)
        self.candidates = {row["candidate_id"]: Candidate.from_json(row) for row in self._texts.rows}
        self.kept = [self.candidates[row["candidate_id"]] for row in self._steps.rows]

    def note_texts(self, candidates: Sequence[Candidate]) -> None:
        """Before they are judged, so that no verdict is ever without its text."""
        new = {c.candidate_id: c for c in candidates if c.candidate_id not in self.candidates}
        self._texts.append(candidate.to_json() for candidate in new.values())
        self.candidates.update(new)

    def note_step(self, step: int, rollouts: Sequence["Rollout"]) -> None:
        self._steps.append({"step": step, "candidate_id": rollout.candidate.candidate_id} for rollout in rollouts)

    def close(self) -> None:
        self._texts.close()
        self._steps.close()


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
    names = [name for name in curve[-1] if name != "step"]
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
