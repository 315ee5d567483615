"""The retrainings of the soak: begun, waited for, and given something to do."""

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import httpx

from flows.soaks.retrain_machine import POLL_S, PROBLEM, Machine

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun, State

POLICY = Path("data/contrastive_rl/policy")
NIGHT_S = 420.0
PICKED_UP_S = 60.0
"""What Prefect's automations and its runner have to begin a crashed run again."""


def begin(machine: Machine) -> UUID:
    """A run as the schedule makes it."""
    deployment_id = machine.deployment_id()

    def made() -> "FlowRun":
        with machine.client() as client:
            return client.create_flow_run_from_deployment(deployment_id)

    return made().id


def state_of(machine: Machine, run_id: UUID) -> "State[Any] | None":
    """None while the server does not say."""
    try:
        with machine.client() as client:
            return client.read_flow_run(run_id).state
    except httpx.HTTPError:
        return None


def is_over(machine: Machine, run_id: UUID) -> bool:
    """Whether a run has ended for good: a crashed one is begun again."""
    state = state_of(machine, run_id)
    return state is not None and state.is_final() and not state.is_crashed()


def finished(machine: Machine, run_id: UUID) -> "State[Any]":
    """How a run ended, a crashed one after it was begun again."""
    crashed_at: float | None = None

    def ended() -> "State[Any] | None":
        nonlocal crashed_at
        state = state_of(machine, run_id)
        if state is None or not state.is_final():
            crashed_at = None
            return None
        crashed_at = crashed_at or time.monotonic()
        is_left_so = time.monotonic() - crashed_at > PICKED_UP_S
        return state if is_left_so or not state.is_crashed() else None

    return machine.wait_for(ended, f"the end of run {run_id}", NIGHT_S)


def pause(machine: Machine, run_id: UUID, seconds: float) -> None:
    """Wait, no longer than the run lasts."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not is_over(machine, run_id):
        machine.reap()
        time.sleep(POLL_S)


def bring(machine: Machine, news: str, number: int) -> None:
    """Give the next run something to do."""
    freeze_evaluate(machine, frozen=news != "problem")
    if news == "problem":
        inbox = machine.root / "data/problems/inbox/level1"
        inbox.mkdir(parents=True, exist_ok=True)
        size = 32 + 4 * number
        (inbox / f"size{size}.py").write_text(PROBLEM.format(size=size))
        return
    source = machine.folder / ("trained" if news == "better" else "untrained")
    shutil.rmtree(machine.root / POLICY)
    shutil.copytree(source, machine.root / POLICY)
    (machine.root / POLICY / "night.txt").write_text(f"{number}")  # or it would be a policy that was compared before
    machine.run(sys.executable, "-m", "dvc", "commit", "--force", "--quiet")


def freeze_evaluate(machine: Machine, *, frozen: bool) -> None:
    """What it finds decides nothing, and would take half of a night that brings but another policy."""
    machine.run(sys.executable, "-m", "dvc", "freeze" if frozen else "unfreeze", "evaluate")


def make_untrained(machine: Machine) -> None:
    """A policy that knows nothing."""
    from tasks.params import load_params
    from tasks.training.policy import new_policy, save_policy

    params = load_params(machine.root / "params.yaml")
    made = new_policy([PROBLEM.format(size=8)], params.policy, seed=0)
    save_policy(made, machine.folder / "untrained")


def enthrone_untrained(machine: Machine) -> int:
    """Make it champion by hand, as somebody may who looks at the registry; its version."""
    from flows.retraining.champion_params import as_tag
    from tasks.params import load_params
    from tasks.registry import Registry

    registry, tags = Registry(), as_tag(load_params(machine.root / "params.yaml").policy)
    run = registry.record("by hand", tags={}, metrics={}, files={})
    made = registry.register(machine.folder / "untrained", mlflow_run_id=run, tags=tags)
    registry.promote(made, over=registry.champion())
    return made.version
