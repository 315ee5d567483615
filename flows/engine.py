"""Where and how a stage runs: its working folder, resuming, worker threads, retries and progress bars.

A stage is a function of a Stage. run_stage gives it checked params, a folder that survives a kill, and a way to
publish its outputs. It needs no orchestrator; where PREFECT_API_URL names a live server, it is a flow run in its UI.
"""

import csv
import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import yaml
from tqdm import tqdm

from flows.ancestors import GRACE_S, end_with_ancestors, ended_by_sigterm
from flows.publishing import full_disks, publish, require_writable
from tasks.errors import CudaL1Error, MachineError, PreemptedError
from tasks.params import Params, as_document, load_params
from tasks.problems.catalogue import INBOX, QUARANTINE
from tasks.tracking import Tracker, tracked

WORK = Path("work")
DATA = Path("data")
HISTORY = DATA / "history.duckdb"
QUIET_TERMINAL_INTERVAL_S = 10.0
FINISHED = "finished"
"""File in a working folder that says its outputs are whole and published, though perhaps not yet noted by DVC."""
_ASKED_TO_END = (
    "the machine asked this process to end (SIGTERM); what was done until now is kept, and the same command continues"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One run of one stage."""

    name: str
    params: Params
    key: str
    """Hash of everything the stage's result depends on: a changed param, input or line of code is another key."""
    folder: Path
    """work/<stage>/<key>: what a killed run leaves here, the next run with the same key continues."""
    run_id: str
    """Names this run in the history. Resuming keeps it; running the same again from the start makes a new one."""
    started_at: float
    """Unix time in seconds at which the run was first begun."""

    @property
    def sections(self) -> dict[str, Any]:
        """The sections of params.yaml that the stage's result depends on."""
        document = as_document(self.params)
        return {section: document[section] for section in _spec(self.name)["params"]}

    @property
    def outputs(self) -> Path:
        """Where outputs are built before publish moves them to data/<stage>/."""
        return self.folder / "outputs"

    def tracked(self) -> AbstractContextManager[Tracker]:
        """The MLflow run of this stage."""
        return tracked(self.name, params=self.sections, run_id=self.run_id)

    def write_json(self, name: str, value: object) -> None:
        """Write one small output file, such as metrics.json."""
        (self.outputs / name).write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")

    def write_rows(self, name: str, rows: Iterable[dict[str, Any]]) -> None:
        """Write an output of one JSON object a line."""
        (self.outputs / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write_csv(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Write a curve or a table; a column that a row lacks stays empty."""
        columns = list(dict.fromkeys(column for row in rows for column in row))
        with (self.outputs / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)


def run_stage(name: str, work: Callable[[Stage], None]) -> None:
    """Run one stage to its end and publish what it wrote; the whole of ``python -m flows.<stage>``.

    Ends the process with status 1 and a message for the user when something we raise on purpose goes wrong.
    """
    end_with_ancestors()
    try:
        params = load_params()
        with ended_by_sigterm(f"{name} failed: {_ASKED_TO_END}"), _only_one(name):
            require_writable(DATA / name)
            stage = _resume_or_begin(name, params)
            if not (stage.folder / FINISHED).exists():
                _maybe_as_flow(name, work)(stage)
            publish(stage.outputs, DATA / name)
            (stage.folder / FINISHED).touch()
    except PreemptedError as error:
        _fail(name, str(error), status=143)
    except CudaL1Error as error:
        _fail(name, f"{type(error).__name__}: {error}")
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _fail(name, f"{error.strerror or error}{where}; mend that and run the same command again")
    except KeyboardInterrupt:
        _fail(name, "interrupted; the same command continues where it stopped", status=130)
    except Exception as error:  # noqa: BLE001 - libraries raise what they like, on a full disk for one; the user gets a word
        _fail(name, f"{type(error).__name__}: {error}")


def progress(desc: str, *, total: int, unit: str) -> "tqdm[NoReturn]":
    """A progress bar with rate and time left; written rarely where nobody watches a terminal."""
    watched = sys.stderr.isatty()
    return tqdm(
        total=total,
        desc=desc,
        unit=unit,
        mininterval=0.1 if watched else QUIET_TERMINAL_INTERVAL_S,
        dynamic_ncols=watched,
        ascii=None if watched else " #",
    )


def say(message: str) -> None:
    """A line for the user that does not tear a progress bar apart."""
    tqdm.write(message, file=sys.stderr)


def stage_key(name: str, params: Params) -> str:
    """Hash of the stage's params sections and of every file it depends on, as dvc.yaml lists them."""
    spec, document = _spec(name), as_document(params)
    digest = hashlib.sha256(json.dumps({s: document[s] for s in spec["params"]}, sort_keys=True).encode())
    for file in _files(map(Path, spec["deps"])):
        digest.update(f"\0{file}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _spec(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load(Path("dvc.yaml").read_text())["stages"][name])


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in sorted(paths):
        if path.is_dir():
            found = sorted(p for p in path.rglob("*") if p.is_file() and p.suffix != ".pyc")
            yield from (p for p in found if p.relative_to(path).parts[0] not in (INBOX, QUARANTINE))
        elif path.exists():
            yield path
        else:
            raise MachineError(f"{path} is missing; `dvc repro` makes it")


def _resume_or_begin(name: str, params: Params) -> Stage:
    key = stage_key(name, params)
    current = WORK / name / key
    for folder in (WORK / name).iterdir():
        # Another key is another experiment: its checkpoints must never be resumed.
        if folder.is_dir() and (folder != current or _was_recorded(folder)):
            # Renamed first: a kill amid the removal must not leave a folder that looks like a run to continue.
            doomed = folder.with_name(f".{folder.name}.removed")
            folder.replace(doomed)
            shutil.rmtree(doomed)
    begun = current / "begun"
    if begun.exists():
        say(f"{name}: continuing the run that was interrupted")
    else:
        current.mkdir(exist_ok=True)
        begun.touch()
    started_at = begun.stat().st_mtime
    (current / "outputs").mkdir(exist_ok=True)
    run_id = f"{name}-{key}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime(started_at))}"
    return Stage(name=name, params=params, key=key, folder=current, run_id=run_id, started_at=started_at)


def _was_recorded(folder: Path) -> bool:
    """Whether DVC noted the result of this finished run: then running again means starting afresh."""
    finished, lock = folder / FINISHED, Path("dvc.lock")
    return finished.exists() and lock.exists() and lock.stat().st_mtime >= finished.stat().st_mtime


@contextmanager
def _only_one(name: str, patience_s: float = GRACE_S + 20.0) -> Iterator[None]:
    """Hold the stage's lock: two writers in one working folder would spoil each other's work.

    Waits, since a killed run's process takes a moment to notice, and then may write a checkpoint.
    """
    (WORK / name).mkdir(parents=True, exist_ok=True)
    with (WORK / name / "lock").open("w") as lock:
        began = noted_at = time.monotonic()
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > began + patience_s:
                    raise MachineError(
                        f"another {name} is running in {Path.cwd()}; wait for it or end it, then run this again"
                    ) from None
                if time.monotonic() > noted_at + QUIET_TERMINAL_INTERVAL_S:
                    noted_at = time.monotonic()
                    say(f"{name}: waiting for the one that ends or runs here, {patience_s:.0f} s at most")
                time.sleep(0.2)
        yield


def _maybe_as_flow(name: str, work: Callable[[Stage], None]) -> Callable[[Stage], None]:
    """The stage as a Prefect flow when a live server is configured; else the plain function, at no cost."""
    url = os.environ.get("PREFECT_API_URL")
    if not url:
        return work
    from flows.services.server import is_alive

    if not is_alive(url):
        say(f"{name}: no Prefect server answers at {url}; running without it (unset PREFECT_API_URL to silence this)")
        return work
    from prefect import flow

    return flow(name=name, flow_run_name=name, validate_parameters=False, persist_result=False)(work)


def _fail(name: str, message: str, status: int = 1) -> NoReturn:
    log = WORK / name / "error.log"
    where = ""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(traceback.format_exc())
        where = f"\n  (details: {log})"
    except OSError:
        pass  # the message matters more than its log, and a full or read-only disk is likely the cause
    if full := full_disks((WORK, DATA, Path(tempfile.gettempdir()))):
        where += (
            f"\n  (the disk of {', '.join(map(str, full))} is full: free some space and run the same command again)"
        )
    say(f"{name} failed: {message}{where}")
    sys.exit(status)
