"""What is registered with a Prefect server: schedule, parameters with descriptions, one run at a time, the alarm."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prefect.events.filters import EventFilter, EventIDFilter

from flows.retrain import DEFAULTS
from tasks.errors import MachineError, ParamsError
from tasks.params import RetrainParams
from tasks.registry import PolicyVersion
from tasks.registry_errors import RegistryError
from tests.prefect_server import prefect_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.settings import PREFECT_API_URL, temporary_settings

    fast = {"PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "1"}
    with (
        prefect_server(tmp_path_factory.mktemp("prefect"), **fast) as url,
        temporary_settings({PREFECT_API_URL: url}),
        SyncPrefectClient(url) as client,
    ):
        yield client


def nightly(client):
    return client.read_deployment_by_name("retrain/nightly")


def test_what_stands_in_params_is_what_the_ui_shows_first(client):
    from flows.deployment import register

    register(RetrainParams(cron="30 3 * * 6", timezone="Europe/Berlin", alpha=0.01))
    found = nightly(client)
    (schedule,) = found.schedules
    assert (schedule.schedule.cron, schedule.schedule.timezone, schedule.active) == (
        "30 3 * * 6",
        "Europe/Berlin",
        True,
    )
    assert found.parameters["alpha"] == 0.01
    assert found.global_concurrency_limit is None  # it would end a run when the server restarts; the runner has one
    described = found.parameter_openapi_schema["properties"]
    assert set(described) == set(found.parameters)
    assert [name for name, shown in described.items() if not shown.get("description")] == []


def test_what_was_edited_in_the_ui_survives_a_restart_until_params_are_asked_for(client):
    from prefect.client.schemas.schedules import IntervalSchedule

    from flows.deployment import register

    register(DEFAULTS, from_params=True)
    found = nightly(client)
    hourly = IntervalSchedule(interval=timedelta(hours=1), anchor_date=datetime(2026, 1, 1, tzinfo=UTC))
    client.update_deployment_schedule(found.id, found.schedules[0].id, active=False, schedule=hourly)
    register(RetrainParams(cron="1 1 * * *"))
    (kept,) = nightly(client).schedules
    assert (kept.schedule.interval, kept.active) == (timedelta(hours=1), False)
    register(RetrainParams(cron="1 1 * * *"), from_params=True)
    (reset,) = nightly(client).schedules
    assert (reset.schedule.cron, reset.active) == ("1 1 * * *", True)


def test_the_scheduler_makes_runs_of_the_schedule(client):
    """Its service may fail without a word; then no schedule ever starts anything."""
    from prefect.client.schemas.filters import FlowRunFilter

    from flows.deployment import register

    register(DEFAULTS, from_params=True)
    chosen = FlowRunFilter(deployment_id={"any_": [nightly(client).id]}, state={"type": {"any_": ["SCHEDULED"]}})
    deadline = time.monotonic() + 60
    due: set[tuple[int, int]] = set()
    while (2, 0) not in due and time.monotonic() < deadline:  # those of an older schedule may still be there
        time.sleep(0.3)
        due = {
            (run.expected_start_time.hour, run.expected_start_time.minute)
            for run in client.read_flow_runs(flow_run_filter=chosen)
        }
    assert (2, 0) in due


def test_an_automation_answers_regressions_and_is_made_once(client):
    from flows.deployment import AUTOMATION, register

    register(DEFAULTS)
    register(DEFAULTS)
    (automation,) = client.read_automations_by_name(AUTOMATION)
    assert automation.trigger.expect == {"cuda-l1.policy.regressed"}
    (action,) = automation.actions
    assert action.deployment_id == client.read_deployment_by_name("policy_regressed/alarm").id


def test_a_regression_raises_the_alarm_once_for_a_champion_and_a_night(client, monkeypatch):
    """Also when the server was told so long ago that it would take the same event for another one."""
    from flows.retraining import regression

    emitted, emit = [], regression.emit_event

    def counted(**event: Any) -> None:
        emitted.append(event["id"])
        emit(**event)

    monkeypatch.setattr(regression, "emit_event", counted)

    def regressed(*, champion: int = 1, begun_at: datetime = datetime(2026, 11, 22, 2, tzinfo=UTC)) -> int:
        worse_than = PolicyVersion(version=champion, digest="0123", mlflow_run_id="run", created_at=0.0, tags={})
        regression.raise_alarm(worse_than, {"reason": "worse"}, begun_at=begun_at, timezone="Asia/Tokyo")
        return len(emitted)

    assert regressed() == 1
    deadline = time.monotonic() + 60
    while not client.read_events(EventFilter(id=EventIDFilter(id=emitted)), limit=1).events:
        assert time.monotonic() < deadline
        time.sleep(0.3)
    assert regressed() == 1
    assert regressed(begun_at=datetime(2026, 11, 22, 2, 59, tzinfo=UTC)) == 1  # a minute to noon
    assert regressed(begun_at=datetime(2026, 11, 22, 3, 1, tzinfo=UTC)) == 2
    assert regressed(champion=2) == 3
    assert len(set(emitted)) == 3


@pytest.mark.parametrize(
    ("error", "num_tries"),
    [pytest.param(RegistryError("no answer"), 4, id="helps"), pytest.param(MachineError("no disk"), 1, id="does not")],
)
def test_a_step_is_tried_again_where_that_may_help(client, error, num_tries):
    from prefect import flow

    from flows.retrain import step

    tries = []

    def fail() -> None:
        tries.append(1)
        raise error

    failing = step(fail).with_options(retry_delay_seconds=0)
    state = flow(lambda: failing(), name="failing")(return_state=True)
    assert state.is_failed()
    assert len(tries) == num_tries


def test_a_schedule_that_is_none_is_refused(client):
    from flows.deployment import register

    with pytest.raises(ParamsError, match=r"section retrain: .*cron"):
        register(RetrainParams(cron="61 25 * * *"), from_params=True)
