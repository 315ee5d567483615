"""The retraining on a schedule: registers it with a Prefect server and does its runs, until it is ended.

    PREFECT_API_URL=http://127.0.0.1:4200/api python -m flows.deployment

Schedule and parameters come from params.yaml when the deployment is made, and are edited in the UI from then on.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn, cast
from uuid import UUID

# Before prefect is imported: its telemetry only adds errors where there is no network.
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")

import httpx
from prefect import serve
from prefect.automations import Automation
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import CronSchedule
from prefect.deployments.runner import EntrypointType, RunnerDeployment
from prefect.events import EventTrigger
from prefect.events.actions import RunDeployment
from prefect.events.schemas.automations import Posture
from prefect.exceptions import ObjectNotFound
from pydantic import ValidationError

from flows.engine import say
from flows.retrain import flow_parameters, retrain
from flows.retraining.crash import HEARTBEAT_S, pick_up, watch_for_crashes
from flows.retraining.regression import REGRESSED, policy_regressed
from flows.services.server import is_alive
from tasks.errors import CudaL1Error, ParamsError
from tasks.params import RetrainParams, load_params

NAME, ALARM, AGAIN = "nightly", "alarm", "again"
AUTOMATION = "a policy has regressed"
TAGS = ["cuda-l1"]
NO_SERVER = 3
POLL_S = 2.0
START_S = 60.0
"""For a server that is started together with us, as after a restart of the machine."""


def register(params: RetrainParams, *, from_params: bool = False) -> list[RunnerDeployment]:
    """Make or update the deployments and the automation; returns what is to be served.

    Args:
        from_params: put schedule and parameters back to what params.yaml says, whatever was edited in the UI.

    Raises:
        ParamsError: if the schedule is none.
    """
    found = _found(f"{retrain.name}/{NAME}")
    nightly = RunnerDeployment.from_flow(
        retrain,
        NAME,
        tags=TAGS,
        entrypoint_type=EntrypointType.MODULE_PATH,
        **(_as_in(params) if found is None or from_params else _as_before(found)),
    )
    alarm = RunnerDeployment.from_flow(policy_regressed, ALARM, tags=TAGS, entrypoint_type=EntrypointType.MODULE_PATH)
    again = RunnerDeployment.from_flow(pick_up, AGAIN, tags=TAGS, entrypoint_type=EntrypointType.MODULE_PATH)
    retrain_id = cast(UUID, nightly.apply())
    _automate(cast(UUID, alarm.apply()))
    with get_client(sync_client=True) as client:
        watch_for_crashes(client, retrain_id=retrain_id, pick_up_id=cast(UUID, again.apply()))
    return [nightly, alarm, again]


def _found(name: str) -> DeploymentResponse | None:
    with get_client(sync_client=True) as client:
        try:
            return client.read_deployment_by_name(name)
        except ObjectNotFound:
            return None


def _as_in(params: RetrainParams) -> dict[str, Any]:
    try:
        schedule = CronSchedule(cron=params.cron, timezone=params.timezone)
    except ValidationError as error:
        mistakes = "; ".join(f"{mistake['loc'][0]}: {mistake['msg']}" for mistake in error.errors())
        raise ParamsError(f"params.yaml, section retrain: {mistakes}") from error
    return {"schedules": [schedule], "parameters": flow_parameters(params)}


def _as_before(found: DeploymentResponse) -> dict[str, Any]:
    """Given again, because Prefect takes what is not given as a wish to have none."""
    schedules = [
        DeploymentScheduleCreate(schedule=known.schedule, active=known.active, parameters=known.parameters)
        for known in found.schedules
    ]
    return {"schedules": schedules, "parameters": found.parameters, "paused": found.paused}


def _automate(alarm_id: UUID) -> None:
    """Run the alarm for every regression. An automation of this name stays as it is: it may have got more actions."""
    with get_client(sync_client=True) as client:
        if client.read_automations_by_name(AUTOMATION):
            return
    # What the event carries is filled in by the server.
    reason = {"__prefect_kind": "jinja", "template": "{{ event.payload.reason }}"}
    Automation(
        name=AUTOMATION,
        description="Starts a run that is red, so that somebody looks; add notifications here.",
        trigger=EventTrigger(expect={REGRESSED}, posture=Posture.Reactive, threshold=1, within=timedelta(0)),
        actions=[
            RunDeployment(source="selected", deployment_id=alarm_id, parameters={"reason": reason}, job_variables=None)
        ],
    ).create()


def main() -> None:
    """Register, then do the runs until ended by Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(description="Retrain on a schedule; ended by Ctrl-C.")
    parser.add_argument(
        "--from-params", action="store_true", help="put schedule and parameters back to what params.yaml says"
    )
    arguments = parser.parse_args()
    url = os.environ.get("PREFECT_API_URL")
    if not url:
        _leave_without_server("PREFECT_API_URL is not set")
    try:
        deployments = registered(url, load_params().retrain, from_params=arguments.from_params)
    except CudaL1Error as error:
        sys.exit(f"{type(error).__name__}: {error}")
    if deployments is None:
        _leave_without_server(f"no Prefect server answers at {url}")
    serve_on(url, deployments)


def registered(url: str, params: RetrainParams, *, from_params: bool) -> list[RunnerDeployment] | None:
    """What register returns, also where the server is only starting, or away for a moment; None if it stays away."""
    begun, is_told = time.monotonic(), False
    while time.monotonic() < begun + START_S:
        if is_alive(url):
            try:
                return register(params, from_params=from_params)
            except Exception as error:  # groups of whatever stopped Prefect's client
                if not _is_outage(error):
                    raise
        if not is_told:
            say(f"no Prefect server answers at {url}: waiting for it, {START_S:.0f} s at most")
            is_told = True
        time.sleep(POLL_S)
    return None


def serve_on(url: str, deployments: Sequence[RunnerDeployment]) -> None:
    """Do the runs of the deployments, one after the other, also when the server was away for long."""
    while True:
        try:
            # One at a time here and not by a limit of the deployment: that holds a lease, and a server that is
            # restarted or away when it falls due ends the run. Not paused: what falls due while nobody serves is
            # Late, and catch_up says what becomes of it.
            serve(*deployments, limit=1, heartbeat_seconds=HEARTBEAT_S, pause_on_shutdown=False)
            return
        except Exception as error:  # groups of whatever stopped Prefect's runner
            if not _is_outage(error):
                raise
            say(f"no Prefect server answered at {url}: waiting for it")
        while not is_alive(url):
            time.sleep(POLL_S)


def _leave_without_server(words: str) -> NoReturn:
    sys.stderr.write(f"{words}: start a Prefect server (prefect server start) and set PREFECT_API_URL to its address\n")
    sys.exit(NO_SERVER)


def _is_outage(error: BaseException) -> bool:
    """Whether Prefect's runner has given up on its server, as it does after some minutes."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_outage, error.exceptions))
    return isinstance(error, httpx.TransportError) or "exceeded error threshold" in str(error)


if __name__ == "__main__":
    main()
