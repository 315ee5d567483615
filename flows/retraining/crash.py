"""What becomes of a retraining whose process is gone: the same run is begun again, and continues what was done.

Prefect marks such a run as Crashed: at once where flows.deployment lives on, after LOST_S without a sign of life where
it went down too. Either way the automation of flows.deployment starts pick_up for it.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from prefect import flow
from prefect.automations import Automation
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import StateType
from prefect.events import EventTrigger
from prefect.events.actions import ChangeFlowRunState, RunDeployment
from prefect.events.schemas.automations import Posture
from prefect.states import AwaitingRetry, Completed, Failed, Running, State

from flows.retraining.start import holder

HEARTBEAT_S = 30
"""Between two signs of life of a run; Prefect allows no less."""
LOST_S = 3 * HEARTBEAT_S
MAX_CRASHES = 3
"""What crashes a run that often, such as too little memory, will do so again."""
LOST, CRASHED = "a retraining has vanished", "a retraining has crashed"
_UNDER_WAY = {f"prefect.flow-run.{name}" for name in ("Pending", "Submitting", "Running", "heartbeat")}
"""After these something must follow. A run is Submitting while its process starts, unless who serves it has ended."""


@flow(name="pick_up", persist_result=False)
def pick_up(flow_run_id: UUID) -> State:
    """Begin a crashed retraining again, unless it crashes every time or its process lives after all.

    Args:
        flow_run_id: the run that crashed.
    """
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(flow_run_id)
        if run.state is None or not run.state.is_crashed():
            return Completed(message=f"{run.name} is {run.state_name} by now: there is nothing to do")
        if str(flow_run_id) in holder():
            lives: State[Any] = Running(message="its process lives: the server had lost sight of it")
            client.set_flow_run_state(flow_run_id, lives, force=True)
            return Completed(message=f"the process of {run.name} lives: it goes on")
        num_crashes = sum(state.type is StateType.CRASHED for state in client.read_flow_run_states(flow_run_id))
        if num_crashes >= MAX_CRASHES:
            return Failed(message=f"{run.name} crashed {num_crashes} times, the last time so: {run.state.message}")
        again: State[Any] = AwaitingRetry(message=f"begun again after crash {num_crashes}: {run.state.message}")
        client.set_flow_run_state(flow_run_id, again)
    return Completed(message=f"{run.name} is begun again after crash {num_crashes}")


def watch_for_crashes(client: SyncPrefectClient, *, retrain_id: UUID, pick_up_id: UUID) -> None:
    """Make the two automations; those of these names stay as they are."""
    of_retrain: dict[str, str | list[str]] = {"prefect.resource.id": f"prefect.deployment.{retrain_id}"}
    run_id = {"__prefect_kind": "jinja", "template": "{{ flow_run.id }}"}
    lost = EventTrigger(
        after=_UNDER_WAY,
        expect={"prefect.flow-run.*"},  # final states have names of ours, such as Promoted
        match={"prefect.resource.id": ["prefect.flow-run.*"]},
        match_related=of_retrain,
        for_each={"prefect.resource.id"},
        posture=Posture.Proactive,
        threshold=1,
        within=timedelta(seconds=LOST_S),
    )
    crashed = EventTrigger(
        expect={"prefect.flow-run.Crashed"},
        match_related=of_retrain,
        posture=Posture.Reactive,
        threshold=1,
        within=timedelta(0),
    )
    message = f"nothing was heard of its process for {LOST_S} s: it, its machine or the network is gone"
    begin_again = RunDeployment(
        source="selected", deployment_id=pick_up_id, parameters={"flow_run_id": run_id}, job_variables=None
    )
    for automation in (
        Automation(
            name=LOST,
            description="Marks the run as crashed when its signs of life stay away.",
            trigger=lost,
            actions=[ChangeFlowRunState(name="Crashed", state=StateType.CRASHED, message=message, force=False)],
        ),
        Automation(name=CRASHED, description="Begins the run again.", trigger=crashed, actions=[begin_again]),
    ):
        if not client.read_automations_by_name(automation.name):
            automation.create()
