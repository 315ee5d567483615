"""The chain of stages as one Prefect flow.

Prefect decides when a stage runs and shows it; DVC decides whether it needs to run at all and versions what it wrote.
dvc.yaml is the single place where dependencies are declared.

    python -m flows.pipeline                          # everything that is out of date
    python -m flows.pipeline --until self_supervised
"""

import argparse
import os
import subprocess
import sys

# Before prefect is imported: its telemetry only adds errors where there is no network.
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger
from prefect.states import Completed, State

from flows.ancestors import end_with_parent
from flows.dvc_lock import mend_lock
from flows.services.server import is_alive
from flows.snapshot import SNAPSHOT, is_versioned, snapshot_history
from flows.stages import STAGES
from tasks.errors import MachineError

SKIPPED = ("didn't change, skipping", "is cached - skipping run")
"""What DVC prints when a stage is up to date, or its outputs only have to be fetched from the cache."""


class StageFailedError(RuntimeError):
    """A stage ended with an error; its own output, in the task's log, says why."""


@task(task_run_name="{stage}", cache_policy=NO_CACHE, persist_result=False)
def reproduce(stage: str) -> State | None:
    """Bring one DVC stage up to date; the run's state is Cached when it was already.

    Raises:
        StageFailedError: if the stage failed.
    """
    logger = get_run_logger()
    skipped = False
    mend_lock()
    command = [sys.executable, "-m", "dvc", "repro", "--single-item", stage]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=end_with_parent,  # or a killed flow's dvc would be in the way of the next one's
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            # A progress bar redraws itself within one line: only its last state is worth a log entry.
            text = line.rstrip().rpartition("\r")[2]
            if text:
                logger.info(text)
            skipped = skipped or any(words in line for words in SKIPPED)
    if process.returncode:
        raise StageFailedError(f"{stage} failed with status {process.returncode}; the log above says why")
    return Completed(name="Cached", message="nothing it depends on has changed") if skipped else None


@task(cache_policy=NO_CACHE, persist_result=False)
def version_history() -> None:
    """Let DVC version the history; what the stages made stands, whether that works or not."""
    logger = get_run_logger()
    try:
        snapshot_history()
        logger.info("the history is versioned: commit %s.dvc", SNAPSHOT)
    except MachineError as error:
        logger.warning("%s", error)


@flow(name="cuda_l1")
def pipeline(until: str = STAGES[-1]) -> None:
    """Bring every stage up to date, in order, up to and including one of them."""
    logger = get_run_logger()
    for number, stage in enumerate(STAGES, start=1):
        logger.info("stage %d of %d: %s", number, len(STAGES), stage)
        reproduce(stage)
        if stage == until:
            break
    if until == STAGES[-1] and is_versioned():
        version_history()


def main() -> None:
    """Parse the command line and run the flow."""
    parser = argparse.ArgumentParser(description="Run the chain of stages as one Prefect flow.")
    parser.add_argument("--until", choices=STAGES, default=STAGES[-1], help="last stage to run")
    arguments = parser.parse_args()
    url = os.environ.get("PREFECT_API_URL")
    if url and not is_alive(url):
        sys.exit(f"no Prefect server answers at {url}; start it (prefect server start) or unset PREFECT_API_URL")
    try:
        pipeline(until=arguments.until)
    except StageFailedError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
