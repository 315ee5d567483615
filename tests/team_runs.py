"""Training in one process and in several, each run in a process of its own; prints its rows as JSON.

python -m tests.team_runs sft '{"processes": 2, "zero_stage": 2}' FOLDER
"""

import dataclasses
import json
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from transformers.integrations.deepspeed import is_deepspeed_zero3_enabled

from flows.parts.launching import Trainers, trainers
from tasks.history.exemplars import ExemplarPool
from tasks.history.records import Cost
from tasks.judge.verdict import Verdict
from tasks.params import AdapterParams, EngineParams, load_params
from tasks.training import checkpoints as checkpointing
from tasks.training import sharding
from tasks.training.adapters import with_new_adapter
from tasks.training.examples import Example
from tasks.training.grpo import train_grpo
from tasks.training.rollouts import Rollout
from tasks.training.sft import train_sft
from tasks.variants.candidate import Candidate
from tests.training_builders import SCALED, SCALED_BY_CLAMP, SCALED_IN_PLACE, exemplar, policy, problem, verdict

STEPS = 4
KILLED = "KILLED_AT_STEP"
"""Variable of the environment: who is killed after which step, such as "other:3"; "asked" is the first, by SIGTERM."""
NO_STEP = -1


def sft(
    crew: Trainers, folder: Path, on_step: Any, *, adapts: bool = False, hidden_size: int = 32
) -> list[dict[str, float]]:
    examples = [Example(prompt=SCALED[:n], completion=SCALED_IN_PLACE[n : n + 40]) for n in range(0, 160, 10)]
    made = policy(hidden_size=hidden_size)
    if adapts:
        torch.manual_seed(0)
        made = dataclasses.replace(made, model=with_new_adapter(made.model, AdapterParams(rank=4, alpha=8.0)))
    rows = crew.train(
        train_sft,
        made,
        examples,
        steps=STEPS,
        batch_size=4,
        learning_rate=1e-2,
        checkpoints=folder / "sft",
        seed=3,
        on_step=on_step,
    )
    return [*rows, {"weights": sum(value.detach().double().abs().sum().item() for value in made.model.parameters())}]


def fetched(crew: Trainers, folder: Path, _: Any) -> list[dict[str, float]]:
    """The rows of a model that is too large to be kept as a matter of course, and each weight of its last step that was
    fetched, by its size."""
    from deepspeed.runtime.zero.partitioned_param_coordinator import PartitionedParameterCoordinator, ZeroParamStatus

    fetches: list[tuple[int, int]] = []
    gather = "_PartitionedParameterCoordinator__all_gather_params"
    original = getattr(PartitionedParameterCoordinator, gather)

    def counted(self: Any, params: Any, forward: bool) -> None:
        missing = (each for each in params if each.ds_status == ZeroParamStatus.NOT_AVAILABLE)
        fetches.extend((each.ds_id, each.ds_numel) for each in missing)
        original(self, params, forward)

    with (
        mock.patch.object(PartitionedParameterCoordinator, gather, counted),
        mock.patch.object(sharding, "_FEW", 0),
    ):
        rows = sft(crew, folder, lambda step, values: step == STEPS or fetches.clear(), hidden_size=256)
    return [*rows, {"fetches": len(fetches), "weights": len({*fetches})}]


def grpo(crew: Trainers, folder: Path, on_step: Any, *, micro_batch_size: int | None = None) -> list[dict[str, float]]:
    texts: list[str] = []
    drawn = folder / "drawn.jsonl"

    def judge(candidates: Sequence[Candidate]) -> list[Verdict]:
        texts.extend(candidate.source for candidate in candidates)
        return [*map(_judged, candidates)]

    def keep(step: int, rollouts: Sequence[Rollout], cost: Cost) -> None:
        texts.append(f"{step} {len(rollouts)} {cost.answer_tokens}")
        with drawn.open("a") as file:
            file.writelines(json.dumps([step, rollout.candidate.to_json()]) + "\n" for rollout in rollouts)

    params = load_params()
    updates = params.contrastive_rl.updates_per_step
    rows = crew.train(
        train_grpo,
        policy(),
        [problem("one"), problem("two", SCALED.replace("2.0", "3.0")), problem("three", SCALED.replace("2.0", "4.0"))],
        _pool(drawn, steps=checkpointing.checkpointed_steps(folder / "grpo", updates=updates)),
        judge,
        dataclasses.replace(
            params.contrastive_rl,
            steps=STEPS,
            prompts_per_step=4,
            group_size=4,
            micro_batch_size=micro_batch_size,
            learning_rate=1e-3,
        ),
        exemplars=params.exemplars,
        checkpoints=folder / "grpo",
        seed=5,
        on_step=on_step,
        on_rollouts=keep,
    )
    return [*rows, {"texts": texts}]  # type: ignore[dict-item]


def _judged(candidate: Candidate) -> Verdict:
    return verdict(candidate, speedup=1.0 + len(candidate.source) % 7 if len(candidate.source) > 20 else None)


def _pool(drawn: Path, *, steps: int) -> ExemplarPool:
    """Two exemplars, and what a run that was interrupted had found after so many steps, as the stage has it again."""
    pool = ExemplarPool()
    pool.add("level1/one", exemplar(SCALED_IN_PLACE[:60], speedup=3.0))
    pool.add("level1/one", exemplar(SCALED_BY_CLAMP[:60], speedup=1.0))
    rows = map(json.loads, drawn.read_text().splitlines()) if drawn.exists() else ()
    candidates = [Candidate.from_json(row) for step, row in rows if step <= steps]
    found = ExemplarPool.from_verdicts(candidates, map(_judged, candidates))
    for problem_id in found.problem_ids:
        for each in found.of(problem_id):
            pool.add(problem_id, each)
    return pool


TRAININGS = {
    "sft": sft,
    "adapters": partial(sft, adapts=True),
    "fetched": fetched,
    "grpo": grpo,
    "grpo in parts": partial(grpo, micro_batch_size=1),
}


def main() -> None:
    names, engine, folder = sys.argv[1], EngineParams(**json.loads(sys.argv[2])), Path(sys.argv[3])
    checkpointing.INTERVAL_S = 0.0
    params = dataclasses.replace(load_params(), engine=engine)
    killed, _, step_of_death = os.environ.get(KILLED, f":{NO_STEP}").partition(":")
    done: list[int] = []

    def on_step(step: int, values: dict[str, float]) -> None:
        done.append(step)
        if step == int(step_of_death):
            sys.stderr.write(f"follower: {_follower()}\n")
            if killed == "asked":
                signal.raise_signal(signal.SIGTERM)
            else:
                os.kill(os.getpid() if killed == "first" else _follower(), signal.SIGKILL)

    with trainers(params, folder=folder) as crew:
        found = {name: TRAININGS[name](crew, folder, on_step) for name in names.split(",")}
    assert not is_deepspeed_zero3_enabled(), "the next policy would be loaded as a share of one"
    sys.stderr.write(f"steps done: {', '.join(map(str, done))}\n")
    sys.stdout.write(json.dumps(found) + "\n")


def _follower() -> int:
    return int(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()[0])


if __name__ == "__main__":
    main()
