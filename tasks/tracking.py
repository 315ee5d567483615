"""What is sent to MLflow. The only file that imports mlflow, and never in the process of a stage.

A stage writes its numbers as JSON lines into a folder of its own; a child process follows that file and sends it on. So
a stage waits neither for MLflow's start (4 s) nor for a dead server, its numbers can be watched while it runs, and what
was not sent is still there, to be sent by `python -m tasks.tracking FOLDER`. A thread would share import lock and
interpreter with the training it reports on; a child outlives even a killed stage until the rest is sent.
"""

import json
import logging
import os
import shutil
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

EXPERIMENT = "cuda-l1"
RUN_ID_TAG = "cuda_l1.run_id"
EVENTS, LOG, MLFLOW_ID = "events.jsonl", "log.txt", "mlflow_run_id.txt"
FINISH_S = 30.0  # that a stage waits at its end for the last numbers to be sent
POLL_S, ANSWER_S = 0.2, 5.0
_SQLITE = "sqlite:///"
_SENDER_ENVIRONMENT = {  # MLflow's own defaults are 7 retries of 120 s each
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}

logger = logging.getLogger(__name__)


def tracking_uri() -> str:
    """Where numbers go: MLFLOW_TRACKING_URI, or a file in the working folder."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"{_SQLITE}{Path.cwd() / 'mlflow.db'}"


@contextmanager
def tracked(stage: str, *, run_id: str, params: Mapping[str, Any]) -> Iterator["Tracker"]:
    """The MLflow run of one stage, named after it.

    Nested params are filed under dotted names; the run_id as a tag, which joins it to the history. A stage that starts
    again under the run_id of a run that did not finish continues that run.
    """
    tracker = Tracker(stage, run_id=run_id, params=params)
    try:
        yield tracker
    except BaseException:
        tracker.finish("FAILED")
        raise
    tracker.finish("FINISHED")


class Tracker:
    """Writes down what a stage tracks. Nothing here raises or waits because of MLflow; at worst it warns, once."""

    def __init__(self, stage: str, *, run_id: str, params: Mapping[str, Any]) -> None:
        self._stage = stage
        self._has_warned = False
        self._folder: Path | None = None
        self._sender: subprocess.Popen[bytes] | None = None
        self.mlflow_run_id: str | None = None  # known once the run has ended, where MLflow could be told in time
        try:
            self._folder = _new_folder(stage)
            self._told = (self._folder / MLFLOW_ID).open("w+")  # now: its sender removes the folder in the end
            self._write("start", stage=stage, run_id=run_id, params=_dotted(params))
            self._sender = _start_sender(self._folder)
        except OSError as error:
            self._warn(str(error))

    def log_metrics(self, values: Mapping[str, float], *, step: int = 0) -> None:
        # float(): the numbers of numpy and torch are none to json.
        self._write("metrics", values={name: float(value) for name, value in values.items()}, step=step)

    def log_artifact(self, path: Path) -> None:
        """File a file or a folder as it is now or a little later, at the latest when the stage ends."""
        self._write("artifact", path=str(path.absolute()))

    def log_figure(self, figure: Any, name: str) -> None:
        """File a plotly figure, or the text of a page, as figures/<name>.html."""
        self._write("figure", name=f"{name}.html", html=figure if isinstance(figure, str) else figure.to_html())

    def finish(self, status: str) -> None:
        """End the run with one of MLflow's words for how, and wait a little until everything is sent."""
        self._write("end", status=status)
        if self._sender is None:
            return
        try:
            self._sender.wait(FINISH_S)
            self._warn_of_failed_sender()
        except subprocess.TimeoutExpired:
            self._warn(f"it took more than {FINISH_S:g} s")
            self._sender.kill()
        with self._told:
            self.mlflow_run_id = self._told.read() or None

    def _write(self, event: str, **content: Any) -> None:
        if self._folder is None:
            return
        line = json.dumps({"event": event, "time_ms": int(time.time() * 1000), **content})
        try:
            with (self._folder / EVENTS).open("a") as events:
                events.write(f"{line}\n")
        except OSError as error:
            self._warn(str(error))
        self._warn_of_failed_sender()

    def _warn_of_failed_sender(self) -> None:
        if self._folder and self._sender and self._sender.poll():
            log = self._folder / LOG
            said = log.read_text(errors="replace").strip() if log.exists() else f"{self._folder} is gone"
            self._warn(said.rpartition("\n")[2][:500])

    def _warn(self, reason: str) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        fate = "lost: no folder can be written to"
        if self._folder:
            fate = f"kept in {self._folder}; to send them: {sys.executable} -m tasks.tracking {self._folder}"
        logger.warning(f"numbers of {self._stage} do not reach MLflow at {tracking_uri()}: {reason}. They are {fate}")


def send(folder: Path, *, writer_pid: int | None) -> None:
    """Send what a stage wrote into a folder, also while our parent, writer_pid, is still writing; then remove it."""
    uri = tracking_uri()
    _refuse_unreachable(uri)
    run = None
    for events in _bursts(folder / EVENTS, writer_pid):
        if run is None:
            run = _RemoteRun(uri, events[0])
            (folder / MLFLOW_ID).write_text(run.id)
        run.send(events)
    shutil.rmtree(folder)


class _RemoteRun:
    """One run at MLflow's side. Sending an event twice changes nothing, so a folder may be sent again."""

    def __init__(self, uri: str, start: Mapping[str, Any]) -> None:
        from mlflow import MlflowClient

        self._client = MlflowClient(uri)
        experiment = self._client.get_experiment_by_name(EXPERIMENT)
        experiment_id = experiment.experiment_id if experiment else self._client.create_experiment(EXPERIMENT)
        same = f"tags.`{RUN_ID_TAG}` = '{start['run_id']}' AND attributes.status != 'FINISHED'"
        runs = self._client.search_runs([experiment_id], same, max_results=1) or [
            self._client.create_run(experiment_id, start["time_ms"], {RUN_ID_TAG: start["run_id"]}, start["stage"])
        ]
        self.id = runs[0].info.run_id
        names = runs[0].data.metrics  # MLflow would keep both values of a step that a resumed stage does again
        self._sent = {(name, old.step) for name in names for old in self._client.get_metric_history(self.id, name)}
        self._client.update_run(self.id, status="RUNNING")

    def send(self, events: Sequence[Mapping[str, Any]]) -> None:
        from mlflow.entities import Metric, Param

        metrics: list[Metric] = []
        for event in events:
            match event["event"]:
                case "start":
                    params = [Param(name, value) for name, value in event["params"].items()]
                    for first in range(0, len(params), 100):  # MLflow takes no more at once
                        self._client.log_batch(self.id, params=params[first : first + 100])
                case "metrics":
                    at = event["time_ms"], event["step"]
                    new = {(name, event["step"]) for name in event["values"]} - self._sent
                    metrics += [Metric(name, event["values"][name], *at) for name, _ in sorted(new)]
                    self._sent |= new
                case "figure":
                    self._client.log_text(self.id, event["html"], f"figures/{event['name']}")
                case "artifact" if Path(event["path"]).exists():  # else the stage has replaced it since
                    self._client.log_artifact(self.id, event["path"])
        for first in range(0, len(metrics), 1000):
            self._client.log_batch(self.id, metrics[first : first + 1000])
        if events[-1]["event"] == "end":
            self._client.set_terminated(self.id, events[-1]["status"])


def _bursts(path: Path, writer_pid: int | None) -> Iterator[list[dict[str, Any]]]:
    """The events written since the last look, until one of them is the end or nobody is left to write it."""
    unfinished = ""
    with path.open() as events_file:
        while True:
            # Looked at before reading: what a stage wrote right before it died is still to be read.
            is_alone = os.getppid() != writer_pid
            *lines, unfinished = (unfinished + events_file.read()).split("\n")
            events = [json.loads(line) for line in lines]
            if events:
                yield events
                if events[-1]["event"] == "end":
                    return
            if is_alone:
                yield [{"event": "end", "status": "KILLED"}]
                return
            time.sleep(POLL_S)


def _refuse_unreachable(uri: str) -> None:
    """End this process with a sentence if the store is plainly not there; mlflow itself would try for minutes."""
    try:
        if uri.startswith(_SQLITE):
            with closing(sqlite3.connect(uri.removeprefix(_SQLITE))) as database:
                database.execute("BEGIN IMMEDIATE")
        elif uri.startswith("http"):
            with suppress(HTTPError):  # whatever it answers, somebody is there
                urlopen(uri, timeout=ANSWER_S, context=ssl._create_unverified_context()).close()
    except (OSError, ValueError, HTTPException, sqlite3.Error) as error:
        sys.exit(str(error) or type(error).__name__)


def _start_sender(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tasks.tracking", str(folder), str(os.getpid())]
    environment = {**_SENDER_ENVIRONMENT, **os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (folder / LOG).open("wb") as log:
        # A session of its own, because Ctrl-C is for the stage: its last numbers are still sent.
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


def _new_folder(stage: str) -> Path:
    """A folder under mlruns/pending/, or a temporary one where the project cannot be written to."""
    pending = Path.cwd() / "mlruns" / "pending"
    with suppress(OSError):
        pending.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{stage}-", dir=pending))
    return Path(tempfile.mkdtemp(prefix=f"cuda-l1-{stage}-"))


def _dotted(tree: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested sections flattened: {"judge": {"rounds": 9}} becomes {"judge.rounds": "9"}."""
    flat: dict[str, str] = {}
    for name, value in tree.items():
        flat |= _dotted(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: str(value)[:6000]}
    return flat


if __name__ == "__main__":
    os.nice(10)  # a candidate may be timed right now
    send(Path(sys.argv[1]), writer_pid=int(sys.argv[2]) if len(sys.argv) > 2 else None)
