"""Does the history hold? Four writers and four readers of one file, killed at random, and then every row is counted.

    python -m flows.soaks.history --minutes 10 --out work/soak_history.json

A writer notes an append in a file of its own once the history has taken it: those rows must be there at the end, each
once. A writer that is started again appends first what it may have been killed amid, as a resumed stage does.
"""

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from flows.engine import WORK, progress, say
from flows.soaks.history_jobs import BATCH, BYSTANDER, batch, quiet_history, read_notes, read_on, write_on

NUM_EACH = 4
KILL_EVERY_S = (0.2, 2.0)
FIRST_S = 0.1
"""For the first writer's first batches, before anybody is killed."""
END_S = 60.0
"""What the last append or query may take after the end."""
LATE_S = 1.0
"""What a reader may wait."""

_WORK = {"writer": write_on, "reader": read_on}
_STORED = "SELECT candidate_id, count(*) FROM {table} GROUP BY candidate_id"


@dataclass(frozen=True, kw_only=True, slots=True)
class Soaked:
    """What became of the rows, and how long anybody waited."""

    duration_s: float
    num_kills: int
    num_acknowledged: int
    """Verdicts whose append returned to the writer."""
    num_stored: int
    """More than acknowledged where a writer was killed between its append and its note of it."""
    num_lost: int
    num_doubled: int
    num_torn: int
    """Batches of which only a part is there."""
    num_appends: int
    num_queries: int
    longest_append_s: float
    longest_query_s: float
    median_append_s: float
    median_query_s: float
    percentile99_query_s: float
    num_late_queries: int
    longest_query_alone_s: float
    """Of a bystander with a file of its own: what the machine takes where nobody else wants the file."""
    num_late_queries_alone: int
    errors: list[str]

    @property
    def is_whole(self) -> bool:
        return not (self.num_lost or self.num_doubled or self.num_torn or self.errors)


def soak(folder: Path, *, duration_s: float, seed: int) -> Soaked:
    """Let them loose on a history in the folder, kill and restart one after another, and count."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tasks.history.store", "flows.engine"])
    history, rng = folder / "history.duckdb", random.Random(seed)
    jobs = [(work, history, folder / f"{name}_{n}") for name, work in _WORK.items() for n in range(NUM_EACH)]
    jobs.append((read_on, quiet_history(folder / "quiet" / "history.duckdb"), folder / BYSTANDER))
    _, _, first_notes = jobs[0]
    while not read_notes(first_notes):  # or on a busy machine nobody may have got to an append at the end
        write_on(history, first_notes, time.monotonic() + FIRST_S)
    begun = time.monotonic()
    end = begun + duration_s

    def start(work: Callable[[Path, Path, float], None], file: Path, notes: Path) -> BaseProcess:
        process = context.Process(target=work, args=(file, notes, end), daemon=True)
        process.start()
        return process

    running = [start(*job) for job in jobs]
    num_kills = 0
    with progress("soaking", total=round(duration_s), unit="s") as bar:
        while (left_s := end - time.monotonic()) > 0:
            bar.update(int(duration_s - left_s) - bar.n)
            time.sleep(min(rng.uniform(*KILL_EVERY_S), left_s))
            victim = rng.randrange(len(jobs))
            running[victim].kill()
            running[victim].join()
            running[victim] = start(*jobs[victim])
            num_kills += 1
    for process in running:
        process.join(END_S)
    unfinished = [notes.name for process, (_, _, notes) in zip(running, jobs, strict=True) if process.exitcode != 0]
    notes_by_name = {notes.name: read_notes(notes) for *_, notes in jobs}
    return _summed(
        notes_by_name,
        stored=_stored(history),
        errors=[f"{name} did not come to its end" for name in unfinished],
        num_kills=num_kills,
        duration_s=time.monotonic() - begun,
    )


def _stored(history: Path) -> list[dict[str, int]]:
    """How often each candidate stands in the table of candidates, and in that of verdicts; read row by row."""
    from tasks.history.store import History

    tables = ("candidates", "verdicts")
    return [dict(History(history).query(_STORED.format(table=table)).rows()) for table in tables]


def _summed(
    notes: Mapping[str, Sequence[tuple[float, str]]],
    *,
    stored: Sequence[Mapping[str, int]],
    errors: list[str],
    num_kills: int,
    duration_s: float,
) -> Soaked:
    acknowledged, lost, torn = 0, 0, 0
    for writer, lines in notes.items():
        if not writer.startswith("writer"):
            continue
        num_batches = sum(said == "ok" for _, said in lines)
        acknowledged += num_batches * BATCH
        # One more may be there: the writer was killed before it could note it.
        for number in range(num_batches + 1):
            ids = [candidate.candidate_id for candidate in batch(writer, number)[1]]
            missing = [sum(name not in counts for name in ids) for counts in stored]
            lost += max(missing) if number < num_batches else 0
            torn += any(number not in (0, BATCH) for number in missing) or len(set(missing)) > 1
    appends, queries, alone = (sorted(_times(notes, name)) for name in (*_WORK, BYSTANDER))
    return Soaked(
        duration_s=round(duration_s, 1),
        num_kills=num_kills,
        num_acknowledged=acknowledged,
        num_stored=sum(stored[-1].values()),
        num_lost=lost,
        num_doubled=sum(count - 1 for counts in stored for count in counts.values()),
        num_torn=torn,
        num_appends=len(appends),
        num_queries=len(queries),
        longest_append_s=_at(1.0, appends),
        longest_query_s=_at(1.0, queries),
        median_append_s=_at(0.5, appends),
        median_query_s=_at(0.5, queries),
        percentile99_query_s=_at(0.99, queries),
        num_late_queries=sum(taken_s > LATE_S for taken_s in queries),
        longest_query_alone_s=_at(1.0, alone),
        num_late_queries_alone=sum(taken_s > LATE_S for taken_s in alone),
        errors=errors + [f"{name}: {said}" for name, lines in notes.items() for _, said in lines if not _is_fine(said)],
    )


def _at(share: float, times_s: Sequence[float]) -> float:
    """The time that this share of sorted ones does not exceed; 0 of none, where a short soak let nobody come to one."""
    return round(times_s[min(int(share * len(times_s)), len(times_s) - 1)], 3) if times_s else 0.0


def _is_fine(said: str) -> bool:
    return said in ("ok", "nothing yet")


def _times(notes: Mapping[str, Sequence[tuple[float, str]]], kind: str) -> Iterator[float]:
    for name, lines in notes.items():
        if name.startswith(kind):
            yield from (taken_s for taken_s, said in lines if said == "ok")


def main() -> None:
    """Parse the command line and soak; exit code 1 when a row is lost, doubled or torn, or anything was refused."""
    parser = argparse.ArgumentParser(description="Kill writers and readers of one history at random; count its rows.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0, help="of the kills")
    parser.add_argument("--out", type=Path, default=WORK / "soak_history.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-history-") as folder:
        soaked = soak(Path(folder), duration_s=arguments.minutes * 60, seed=arguments.seed)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(asdict(soaked), indent=1) + "\n")
    say("\n".join(f"{name}: {value}" for name, value in asdict(soaked).items()))
    sys.exit(0 if soaked.is_whole else 1)


if __name__ == "__main__":
    main()
