"""What must hold after every fault of the soak, whatever it was: each check returns what it found wrong, in words."""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import UUID

from flows.soaks.retrain_faults import Fault
from flows.soaks.retrain_machine import POLL_S, Machine, reap

PATIENCE_S = 30.0
JUDGING = ("filter_variants", "self_supervised", "contrastive_rl", "evaluate")


class Witness:
    """Remembers what was there before each fault, to find out what was lost."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._journalled: set[tuple[str, str]] = set()
        self._champion: int | None = None
        self.losers: set[str] = set()
        """Digests of policies that must never become champion."""

    def look(self) -> None:
        """Note every verdict that a journal holds by now."""
        for stage, pattern in (
            {stage: f"{stage}/*" for stage in JUDGING} | {"retrain": "retrain/comparisons/*"}
        ).items():
            for path in (self._machine.root / "work").glob(f"{pattern}/verdicts.jsonl"):
                self._journalled |= {(stage, candidate_id) for candidate_id in _ids(path)}

    def set_champion(self, version: int) -> None:
        """Somebody has moved the alias by hand."""
        self._champion = version

    def records(self) -> Iterator[str]:
        """Verdicts that the history lacks or holds twice, once nothing runs; journals and outputs are the measure."""
        from tasks.history.store import History

        self.look()
        history = History(self._machine.root / "data" / "history.duckdb")
        stored = history.query(
            "SELECT stage, run_verdicts.run_id, candidate_id, count(*) AS times FROM run_verdicts "
            "JOIN runs ON runs.run_id = run_verdicts.run_id JOIN verdicts USING (verdict_id) GROUP BY ALL"
        )
        # The best are judged a second time on purpose: by evaluate, and by a comparison in a run of its own.
        doubled = [row for row in stored.iter_rows() if row[3] > 1 and row[0] != "evaluate"]
        if doubled:
            yield f"{len(doubled)} verdicts stand twice in one run of the history, such as {doubled[0]}"
        held = set(zip(stored["stage"], stored["candidate_id"], strict=True))
        if lost := self._journalled - held:
            yield f"{len(lost)} verdicts of journals are not in the history, such as {min(lost)}"
        for stage in JUDGING:
            output = self._machine.root / "data" / stage / "verdicts.jsonl"
            found = list(_ids(output)) if output.exists() else []
            if len(found) != len(set(found)):
                yield f"{output.name} of {stage} holds {len(found) - len(set(found))} verdicts twice"
            if missing := set(found) - {candidate_id for _, candidate_id in held}:
                yield f"{len(missing)} verdicts of {stage}'s output are not in the history"

    def promotion(self) -> Iterator[str]:
        """A champion that did not win against the one before it."""
        from tasks.registry import Registry

        champion = Registry().champion()
        if champion is None:
            yield "there is no champion any more"
            return
        before, self._champion = self._champion, champion.version
        if champion.version == before:
            return
        if champion.digest in self.losers:
            yield f"version {champion.version} is champion, and is a policy that knows nothing"
        if champion.tags.get("cuda_l1.decision") != "promoted":
            yield f"version {champion.version} is champion, but its trial says {champion.tags.get('cuda_l1.decision')}"
        if champion.tags.get("cuda_l1.compared_with") != f"version {before}":
            yield f"version {champion.version} was compared with {champion.tags.get('cuda_l1.compared_with')}"
        if not self._machine.run("git", "tag", "--list", f"*-champion-{champion.version}*").strip():
            yield f"version {champion.version} is champion, and has no tag in git"


def orphans(machine: Machine) -> Iterator[str]:
    """Processes of a run that has ended, after a while that they have to notice."""
    end = time.monotonic() + PATIENCE_S
    while left := machine.below_runner():
        if time.monotonic() > end:
            yield f"still running {PATIENCE_S:.0f} s after the run: {[' '.join(one.cmdline())[:80] for one in left]}"
            return
        reap()
        time.sleep(POLL_S)


def visible(machine: Machine, run_id: UUID, faults: Sequence[Fault]) -> Iterator[str]:
    """A run that failed or crashed, and neither says why itself nor in its log."""
    from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId

    with machine.client() as client:
        bad = [state for state in client.read_flow_run_states(run_id) if state.type.value in ("FAILED", "CRASHED")]
        if not bad:
            return
        chosen = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run_id]))
        log = "\n".join(entry.message for entry in client.read_logs(log_filter=chosen, limit=200))
    words = {word for fault in faults for word in fault.words.split("|") if word}
    for state in bad:
        if not state.message:
            yield f"the run is {state.name} and does not say why"
        elif state.type.value == "FAILED" and not words:
            yield f"the run failed, though none of the faults is a reason to: {state.message[:200]}"
        elif state.type.value == "FAILED" and not any(word in f"{state.message}\n{log}" for word in words):
            yield f"the run failed without a word of {sorted(words)}: {state.message[:200]}"


def leftovers(machine: Machine) -> Iterator[str]:
    """Half-written outputs, damaged files at the remote, and arrivals of which there is no trace."""
    for path in (machine.root / "data").rglob(".*.partial"):
        yield f"{path.relative_to(machine.root)} is left"
    for path in (machine.remote / "files" / "md5").rglob("*"):
        name = f"{path.parent.name}{path.name}".removesuffix(".dir")
        if path.is_file() and len(name) == 32 and hashlib.md5(path.read_bytes()).hexdigest() != name:
            yield f"{path.name} at the remote is damaged"
    waiting = list((machine.root / "data/problems/inbox").rglob("*.py"))
    if waiting:
        yield f"{len(waiting)} files are still in the inbox"


def _ids(path: Path) -> Iterator[str]:
    """The candidates of the whole lines of a file."""
    for line in path.read_bytes().split(b"\n")[:-1]:
        yield json.loads(line)["candidate_id"]
