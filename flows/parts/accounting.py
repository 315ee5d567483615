"""The account of one run of a stage: what it spent besides judging, and what MLflow and DVC call it.

It goes to the history, and with the outputs into run.json, from which `cuda-l1 history rebuild` brings it back.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from flows.engine import DATA, Stage
from flows.parts.journal import Journal
from flows.parts.runs import run_of
from tasks.errors import RecordError
from tasks.history.records import Cost, Run, RunLink
from tasks.problems.problem import Problem
from tasks.tracking import Tracker

RUN_FILE = "run.json"
JOURNAL = "costs.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """What run.json holds."""

    run: Run
    costs: Sequence[Cost]
    links: Sequence[RunLink]


class Expenses:
    """What a run has spent so far besides judging; each in the journal as soon as it is noted, and once.

    What a kill undid, such as steps after the newest checkpoint, was spent all the same and stays.
    """

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path, remedy="remove that line: what it tells of is then not counted")
        self._costs = dict.fromkeys(Cost(**row) for row in self._journal.rows)

    @property
    def costs(self) -> list[Cost]:
        return list(self._costs)

    def note(self, *costs: Cost) -> None:
        """Add costs; one that is alike in all, its time included, is the same and changes nothing."""
        new = [cost for cost in dict.fromkeys(costs) if cost not in self._costs]
        self._journal.append(asdict(cost) for cost in new)
        self._costs.update(dict.fromkeys(new))

    @contextmanager
    def metered(self, purpose: str) -> Iterator["Meter"]:
        """Note the seconds that the block takes, lap by lap if it says so; of one that fails, its whole laps."""
        meter = Meter(self, purpose)
        yield meter
        meter.lap()

    def close(self) -> None:
        self._journal.close()


class Meter:
    """Notes the seconds of one thing that is done in laps, such as training step by step."""

    def __init__(self, expenses: Expenses, purpose: str) -> None:
        self._expenses = expenses
        self._purpose = purpose
        self._since = time.perf_counter()

    def lap(self) -> None:
        """Note the seconds since the last lap."""
        seconds = time.perf_counter() - self._since
        self._expenses.note(Cost(purpose=self._purpose, seconds=seconds, spent_at=time.time()))
        self.skip()

    def skip(self) -> None:
        """Begin the next lap now: what was done until now is counted elsewhere."""
        self._since = time.perf_counter()


@contextmanager
def accounted(stage: Stage, problems: Mapping[str, Problem]) -> Iterator[tuple[Tracker, Expenses]]:
    """The MLflow run of a stage and its expenses. The stage writes its outputs within: the account names them.

    A stage that fails leaves in the history what it spent until then, and no run.json.
    """
    expenses = Expenses(stage.folder / JOURNAL)
    run = run_of(stage)
    links: list[RunLink] = []
    tracker = None
    try:
        with stage.tracked() as tracker:
            yield tracker, expenses
        links += _output_links(stage)
    finally:
        if tracker and tracker.mlflow_run_id:  # known at the end, when everything has been sent
            links.append(RunLink(system="mlflow", identifier=tracker.mlflow_run_id))
        account = Account(run=run, costs=expenses.costs, links=links)
        _tell_history(account, problems)
        expenses.close()
    stage.write_json(RUN_FILE, asdict(account))


def _tell_history(account: Account, problems: Mapping[str, Problem]) -> None:
    from flows.parts.recording import Recorder

    recorder = Recorder(account.run, problems)
    recorder.account(account.costs, account.links)
    recorder.close()


def read_account(stage: str) -> Account | None:
    """What a stage's last run left in its run.json, or None where there is none.

    Raises:
        RecordError: if the file does not hold an account.
    """
    path = DATA / stage / RUN_FILE
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_bytes())
        return Account(
            run=Run(**found["run"]),
            costs=[Cost(**row) for row in found["costs"]],
            links=[RunLink(**row) for row in found["links"]],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(
            f"{path} holds no account of a run ({error}); `dvc checkout` brings the one it was"
        ) from error


def _output_links(stage: Stage) -> list[RunLink]:
    """Each output with the MD5 that DVC knows it by: it stands in dvc.lock, and names the output in the cache."""
    return [
        RunLink(system="dvc", identifier=f"{DATA / stage.name / path.name}@{_dvc_md5(path)}")
        for path in sorted(stage.outputs.iterdir())
        if path.name != RUN_FILE  # which holds this
    ]


def _dvc_md5(path: Path) -> str:
    """The MD5 of a file, or for a folder that of DVC's list of its files."""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, _md5).hexdigest()
    files = sorted((file.relative_to(path).as_posix(), _dvc_md5(file)) for file in path.rglob("*") if file.is_file())
    listed = json.dumps([{"md5": md5, "relpath": name} for name, md5 in files])
    return f"{_md5(listed.encode()).hexdigest()}.dir"


def _md5(content: bytes = b"") -> Any:
    return hashlib.md5(content, usedforsecurity=False)
