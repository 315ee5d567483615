"""What the history costs at the size of a long project, beside SQLite and the JSON files that others leave.

    python -m flows.benches.history               # about 15 minutes and 4 GB in work/bench-history; resumes

A seeded history of 1 million verdicts with 10 million timing rounds on 300 thousand candidates; every view read whole
where it is of statistics, and for what it is asked about where it has a row per verdict, sample or round.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import duckdb

from flows.benches.history_peers import json_seconds, seconds_of, sqlite_seconds
from flows.benches.made_up_history import BATCHES_PER_RUN, MadeUpHistory, make_history
from tasks.errors import CudaL1Error
from tasks.history.schema import STORAGE_VERSION, VIEWS
from tasks.history.store import History

FOLDER = Path("work/bench-history")
OUT = Path("work/bench-history.json")
LIMITS = {"view_ms": 300.0, "cold_s": 1.0, "append_s": 2.0, "reader_s": 1.0, "bytes_per_round": 40.0}
REPEATS = 5
ASK_EVERY_S = 0.1

# Of views with a row per verdict, sample, check or round: those of one candidate, verdict or run, as people ask.
ASKED = {
    "timing_rounds": "WHERE verdict_id = $verdict",
    "checks": "WHERE verdict_id = $verdict",
    "stage_verdicts": "WHERE candidate_id = $candidate",
    "stage_samples": "WHERE candidate_id = $candidate",
    "exemplar_uses": "WHERE exemplar_id = $exemplar",
    "parents": "WHERE candidate_id = $candidate",
    "lineage": "WHERE candidate_id = $candidate",
    "candidate_speedups": "WHERE candidate_id = $candidate",
    "flaky_timings": "ORDER BY ratio DESC LIMIT 1000",
}
POINT = "SELECT status, speedup FROM verdicts WHERE candidate_id = $candidate"
# And across everything at once.
ACROSS = {
    "timing_rounds": "SELECT count(*), avg(reference_ms / candidate_ms) FROM timing_rounds",
    "stage_verdicts": "SELECT stage, status, count(*) FROM stage_verdicts GROUP BY ALL",
    "stage_samples": "SELECT stage, step, count(*), geomean(speedup) FROM stage_samples GROUP BY ALL",
    "candidate_speedups": "SELECT device, baseline, count(*), geomean(speedup) FROM candidate_speedups GROUP BY ALL",
    "exemplar_uses": "SELECT stage, is_copy, count(*), geomean(gain) FROM exemplar_uses GROUP BY ALL",
    "lineage": "SELECT origin, parent_origin, count(*), geomean(gain) FROM lineage GROUP BY ALL",
    "fast_p_by_stage": "FROM fast_p_by_stage(1.0)",
}


def main() -> None:
    """Make what is missing, measure, and print and write what was found."""
    parser = argparse.ArgumentParser(description="The history at the size of a long project, and its peers.")
    parser.add_argument("--batches", type=int, default=100, help="of 10,000 verdicts each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--no-peers", action="store_true", help="leave SQLite and JSON out, which take most of the time"
    )
    arguments = parser.parse_args()
    if arguments.batches <= BATCHES_PER_RUN:
        parser.error(f"the first {BATCHES_PER_RUN} batches hold no samples to ask for; make at least one more")
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"history-{arguments.seed}-{arguments.batches}.duckdb"
    try:
        make_history(path, seed=arguments.seed, num_batches=arguments.batches)
        found = {"cpu_count": os.cpu_count(), "duckdb": duckdb.__version__, "limits": LIMITS, **_measured(path)}
        found |= _append_seconds(path, seed=arguments.seed, number=arguments.batches)
        if not arguments.no_peers:
            found["peers"] = {"SQLite": sqlite_seconds(path, FOLDER), "JSON files": json_seconds(path, FOLDER)}
    except CudaL1Error as error:
        sys.exit(f"{type(error).__name__}: {error}")
    found["load_average"] = os.getloadavg()[0]
    OUT.write_text(json.dumps(found, indent=1) + "\n")
    sys.stdout.write(_page(found))


def _measured(path: Path) -> dict[str, object]:
    with duckdb.connect(path, read_only=True) as connection:
        counts = {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]
            for table in ("verdicts", "candidates", "samples", "runs", "timing_rounds")
        }
        names = connection.execute("""
            SELECT verdict_id, candidate_id, exemplar_ids[1] FROM samples JOIN prompts USING (prompt_id)
            JOIN verdicts USING (candidate_id) WHERE status = 'correct' ORDER BY verdict_id LIMIT 1
        """).fetchall()[0]
        asked = dict(zip(("verdict", "candidate", "exemplar"), names, strict=True))
        views = {view: _milliseconds(connection, f"FROM {view} {ASKED.get(view, '')}", asked) for view in VIEWS}
        point = _milliseconds(connection, POINT, asked)
        across = {name: _milliseconds(connection, select, {}) for name, select in ACROSS.items()}
    size = path.stat().st_size
    rounds = counts["timing_rounds"]
    return {
        "counts": counts,
        "size_bytes": size,
        "bytes_per_round": (size - _text_bytes(path)) / rounds,
        "view_ms": views,
        "across_ms": across,
        "point_ms": point,
        "cold_s": _cold_seconds(path, asked["candidate"]),
    }


def _milliseconds(connection: duckdb.DuckDBPyConnection, sql: str, values: dict[str, str]) -> float:
    """The median of several times until all rows are here, the first one left out."""
    used = {name: value for name, value in values.items() if f"${name}" in sql}

    def ask() -> None:
        connection.sql(sql, params=used).to_arrow_table()

    ask()
    return statistics.median(seconds_of(ask) for _ in range(REPEATS)) * 1e3


def _cold_seconds(path: Path, candidate_id: str) -> float:
    """From the shell to the answer of a point query, the process started anew each time."""
    query = POINT.replace("$candidate", f"'{candidate_id}'")
    command = [sys.executable, "-m", "flows.cli", "sql", query, "--history", str(path)]

    def ask() -> None:
        subprocess.run(command, check=True, capture_output=True)

    return statistics.median(seconds_of(ask) for _ in range(REPEATS))


def _append_seconds(path: Path, *, seed: int, number: int) -> dict[str, float]:
    """The median of appends of 10,000 verdicts with their candidates, and how long a reader waits at most for them."""
    made_up, copy = MadeUpHistory(seed=seed), FOLDER / "copy.duckdb"
    shutil.copy(path, copy)

    def append(place: int) -> float:
        rows = made_up.batch(number + BATCHES_PER_RUN + place)  # of a stage with samples
        return seconds_of(lambda: History(copy).append(**rows))

    alone = [append(place) for place in range(REPEATS)]
    context = multiprocessing.get_context("spawn")
    (answers, sender), finished = context.Pipe(duplex=False), context.Event()
    reader = context.Process(target=_ask_until, args=(copy, finished, sender), daemon=True)
    reader.start()
    sender.close()  # so that a reader that fails is noticed
    answers.recv()  # when it has imported everything
    for place in range(REPEATS):
        append(REPEATS + place)
    finished.set()
    longest_s = answers.recv()
    reader.join()
    copy.unlink()
    return {"append_s": statistics.median(alone), "reader_s": longest_s}


def _ask_until(path: Path, finished: Event, answers: "Connection[float]") -> None:
    """Tell of the first answer and, at the end, of the longest time that a later one took."""

    def ask() -> None:
        History(path).query("SELECT count(*) FROM verdicts")

    answers.send(seconds_of(ask))
    longest_s = 0.0
    while not finished.is_set():
        longest_s = max(longest_s, seconds_of(ask))
        finished.wait(ASK_EVERY_S)
    answers.send(longest_s)


def _text_bytes(path: Path) -> int:
    """What all sources, prompts and completions take alone, stored the same way."""
    alone = FOLDER / "texts.duckdb"
    alone.unlink(missing_ok=True)
    with duckdb.connect(alone, config={"storage_compatibility_version": STORAGE_VERSION}) as connection:
        connection.execute(f"ATTACH '{path}' AS history (READ_ONLY)")
        for table, column in (("candidates", "source"), ("samples", "completion"), ("prompts", "text")):
            connection.execute(f"CREATE TABLE {table} AS SELECT {column} FROM history.{table}")
    size = alone.stat().st_size
    alone.unlink()
    return size


def _page(found: dict[str, Any]) -> str:
    counts, peers = found["counts"], found.get("peers", {})
    lines = [
        f"{counts['timing_rounds']:,} rounds, {counts['verdicts']:,} verdicts, {counts['candidates']:,} candidates"
    ]
    lines += ["", "| what | measured | limit |", "|---|---|---|"]
    lines += [f"| `{view}` | {ms:.0f} ms | {LIMITS['view_ms']:.0f} ms |" for view, ms in found["view_ms"].items()]
    lines += [f"| `{name}`, everything at once | {ms:.0f} ms | |" for name, ms in found["across_ms"].items()]
    lines += [
        f"| `cuda-l1 sql`, point query from a cold start | {found['cold_s']:.2f} s | {LIMITS['cold_s']:g} s |",
        f"| append of 10,000 verdicts | {found['append_s']:.2f} s | {LIMITS['append_s']:g} s |",
        f"| longest wait of a reader meanwhile | {found['reader_s']:.2f} s | {LIMITS['reader_s']:g} s |",
        f"| bytes a round beside the texts | {found['bytes_per_round']:.1f} | {LIMITS['bytes_per_round']:g} |",
    ]
    if peers:
        names = ["point", "leaderboard", "speedups_by_stage", "best_kernels", "append", "gigabytes"]
        ours = {name: ms / 1e3 for name, ms in found["view_ms"].items()}
        ours |= {"point": found["point_ms"] / 1e3, "append": found["append_s"], "gigabytes": found["size_bytes"] / 1e9}
        lines += ["", "| warm, in seconds | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
        for peer, seconds in {"the history": ours, **peers}.items():
            lines.append(f"| {peer} | " + " | ".join(f"{seconds[name]:.3f}" for name in names) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
