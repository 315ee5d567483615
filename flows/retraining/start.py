"""When a retraining may begin: in time or caught up, and never two at once."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from prefect.context import FlowRunContext

from flows.engine import WORK
from tasks.errors import MachineError

LOCK = WORK / "retrain" / "lock"


def why_skip(
    scheduled_at: datetime, now: datetime, *, is_first_try: bool, catch_up: bool, late_after_s: float
) -> str | None:
    """Why a run that the schedule made is not done, in words; None if it is.

    Prefect keeps runs whose time passed while nobody served the deployment: it calls them Late, and starts every one of
    them, one after the other, as soon as somebody does. It makes none up for the time in which its server was down.

    Args:
        is_first_try: a run that began in time and was then begun again is not late.
    """
    late_s = (now - scheduled_at).total_seconds()
    if catch_up or not is_first_try or late_s <= late_after_s:
        return None
    return (
        f"it was due at {scheduled_at:%Y-%m-%d %H:%M} UTC, {late_s / 3600:.1f} hours ago, and catch_up is off: "
        f"the schedule's next run is the next retraining"
    )


@contextmanager
def only_one() -> Iterator[None]:
    """Hold the project's lock for the retraining.

    Raises:
        MachineError: if another one holds it; a deployment's own runs wait for each other before they come here.
    """
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with LOCK.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise MachineError(
                f"another retraining is under way in {Path.cwd()} ({lock.read().strip()}); wait for it or end it"
            ) from None
        context = FlowRunContext.get()
        run = f", run {context.flow_run.id}" if context and context.flow_run else ""
        lock.truncate(0)
        lock.write(f"process {os.getpid()}, since {time.strftime('%Y-%m-%d %H:%M:%S %Z')}{run}")
        lock.flush()
        yield


def holder() -> str:
    """Who retrains in this project at this moment, in words; empty if nobody does."""
    if not LOCK.exists():
        return ""
    with LOCK.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            return lock.read().strip()
    return ""


def first_begun() -> datetime:
    """When the flow run that we are in was begun, the first time if it was begun again."""
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    return (run.start_time if run else None) or datetime.now(UTC)


def why_not_now(*, catch_up: bool, late_after_s: float) -> str | None:
    """why_skip of the flow run that we are in; one that somebody asked for is never skipped."""
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    if run is None or not run.auto_scheduled or run.expected_start_time is None:
        return None
    return why_skip(
        run.expected_start_time,
        datetime.now(UTC),
        is_first_try=run.run_count <= 1,
        catch_up=catch_up,
        late_after_s=late_after_s,
    )
