"""Stage sft: fine-tune a policy on the variants that passed.

DVC runs this as ``python -m flows.sft``; so can you.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from flows.engine import Stage, progress, run_stage, say
from flows.parts.accounting import accounted
from flows.parts.launching import say_unless_apart, trainers
from flows.parts.records import read_taught, say_left_out
from tasks.errors import TrainingError
from tasks.history.records import TRAINING
from tasks.params import Params
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Problem, Split
from tasks.variants.prompts import Exemplar

if TYPE_CHECKING:
    from tasks.training.examples import Example
    from tasks.training.policy import Policy


def sft(stage: Stage) -> None:
    """Write the policy, and its loss by step as curve.csv."""
    # Heavy libraries are imported by the stages that train, not by whoever imports this module.
    from tasks.training.policy import lack_of_room, load_policy, new_policy, require_room, save_policy, writable
    from tasks.training.sft import train_sft

    params = stage.params
    say_unless_apart(params)
    known = load_problems(params.problems)
    problems = [problem for problem in known.values() if problem.split is Split.TRAIN]
    taught = read_taught()
    if not taught:
        raise TrainingError(
            "there is nothing to learn from: no candidate was correct and as fast as filter_variants.min_speedup asks. "
            "data/filter_variants/verdicts.jsonl says why; lower that, or raise generate_variants.max_per_problem"
        )
    with accounted(stage, known) as (tracker, expenses), trainers(params, folder=stage.folder) as crew:
        if params.policy.model is not None:
            policy = load_policy(params.policy.model, params.policy, seed=params.seed)
        else:
            policy = new_policy(corpus(problems, taught), params.policy, seed=params.seed)
        require_room(policy, problems)  # which later stages ask about, hours from now
        if words := lack_of_room(policy, [each for each in known.values() if each.split is Split.HELD_OUT]):
            say(f"evaluate would refuse to ask for held-out problems: {words}")
        fitting = writable(policy, taught)
        too_long = sum(map(len, taught.values())) - sum(map(len, fitting.values()))
        if not fitting:
            raise TrainingError(
                f"no program that may be taught fits policy.completion_tokens, which is "
                f"{params.policy.completion_tokens}; raise it in params.yaml, and policy.context_tokens with it"
            )
        if too_long:
            say(f"{too_long} candidates are not taught: they are longer than policy.completion_tokens")
        total = params.sft.copying_steps + params.sft.steps
        with progress("fine-tuning", total=total, unit="step") as bar:
            copying, examples = _examples(params, policy, problems, fitting)
            num_examples = len(copying) + len(examples)
            say_left_out(total * params.sft.batch_size - num_examples, asked=total * params.sft.batch_size)
            with expenses.metered(TRAINING) as meter:

                def on_step(step: int, values: dict[str, float]) -> None:
                    meter.lap()
                    bar.update(step - bar.n)
                    tracker.log_metrics(values, step=step)

                curve = crew.train(
                    train_sft,
                    policy,
                    examples,
                    steps=total,
                    first=copying,
                    first_steps=params.sft.copying_steps,
                    batch_size=params.sft.batch_size,
                    learning_rate=params.sft.learning_rate,
                    checkpoints=stage.folder / "checkpoints",
                    seed=params.seed,
                    micro_batch_size=params.sft.micro_batch_size,
                    packing=params.sft.packing,
                    on_step=on_step,
                )
        save_policy(policy, stage.outputs / "policy")
        stage.write_csv("curve.csv", curve)
        final_loss = next((round(row["loss"], 4) for row in reversed(curve) if "loss" in row), None)
        stage.write_json("metrics.json", {"examples": num_examples, "too_long": too_long, "final_loss": final_loss})


def _examples(
    params: Params, policy: "Policy", problems: Sequence[Problem], taught: Mapping[str, Sequence[Exemplar]]
) -> tuple[list["Example"], list["Example"]]:
    """Those of copying, which come first, and those of candidates."""
    from tasks.training.examples import sft_examples

    examples = partial(
        sft_examples,
        problems,
        taught,
        policy=policy,
        weighs_speed=True,
        exemplar_share=params.sft.exemplar_share,
        renamed_share=params.sft.renamed_share,
        num_exemplars=params.exemplars.count,
    )
    num_copying, num_candidates = (
        steps * params.sft.batch_size for steps in (params.sft.copying_steps, params.sft.steps)
    )
    # Seeds apart: what is mixed in with candidates is not what copying began with.
    copying = examples(count=num_copying, invented_share=1.0, seed=-1 - params.seed)
    return copying, examples(count=num_candidates, invented_share=params.sft.invented_share, seed=params.seed)


def corpus(problems: list[Problem], taught: dict[str, list[Exemplar]]) -> list[str]:
    """The texts a tokenizer from scratch is made for: train problems and their taught candidates, nothing held out."""
    return [problem.source for problem in problems] + [
        exemplar.source for exemplars in taught.values() for exemplar in exemplars
    ]


if __name__ == "__main__":
    run_stage("sft", sft)
