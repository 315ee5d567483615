"""A challenger that is significantly worse: the event that says so, and the run that its automation starts.

The run is red until somebody has looked.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import NAMESPACE_URL, UUID, uuid5
from zoneinfo import ZoneInfo

import httpx
from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import get_client
from prefect.events import emit_event
from prefect.events.filters import EventFilter, EventIDFilter
from prefect.states import Failed, State

from tasks.registry import MODEL, PolicyVersion

REGRESSED = "cuda-l1.policy.regressed"
"""The event that says that a challenger was significantly worse than the champion."""
NOON = timedelta(hours=12)


def raise_alarm(champion: PolicyVersion, facts: Mapping[str, str], *, begun_at: datetime, timezone: str) -> None:
    """Emit the event, once for a champion and a night however often its retraining is begun again or repeated.

    Args:
        facts: what the automation may quote.
        begun_at: when the retraining was first begun; a night goes from noon to noon.
        timezone: whose noon.
    """
    night = (begun_at.astimezone(ZoneInfo(timezone)) - NOON).date()
    # The server takes an id once within minutes; what it was told before that, it is asked.
    event_id = uuid5(NAMESPACE_URL, f"{REGRESSED}/{champion.version}/{champion.digest}/{night}")
    if _is_raised(event_id):
        return
    emit_event(
        event=REGRESSED,
        resource={"prefect.resource.id": f"cuda-l1.policy.{MODEL}", "prefect.resource.name": MODEL},
        payload=dict(facts),
        id=event_id,
    )


@flow(name="policy_regressed", persist_result=False)
def policy_regressed(reason: str = "started by hand") -> State:
    """End as failed, so that the dashboard shows it; the champion was kept.

    Args:
        reason: what the comparison found, in words.
    """
    create_markdown_artifact(
        f"# The new policy is worse than the champion\n\n{reason}\n\nThe champion was kept. Look at what has changed "
        f"since it was promoted: `git diff` with its tag, and the retraining's page.\n",
        key="policy-regressed",
        description="a challenger was significantly worse",
    )
    return Failed(message=reason)


def _is_raised(event_id: UUID) -> bool:
    try:
        with get_client(sync_client=True) as client:
            return bool(client.read_events(EventFilter(id=EventIDFilter(id=[event_id])), limit=1).events)
    except httpx.HTTPError:
        return False  # rather twice than never
