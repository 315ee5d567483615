"""The same history in SQLite and in JSON files, one a run, and the same questions put to them."""

import json
import math
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb

FETCHED = 20_000
_COLUMNS = (
    "run_id, stage, verdict_id, candidate_id, problem_id, status, detail, device, protocol, baseline, speedup, "
    "speedup_low, speedup_high, seconds, origin"
)
_ROUNDS = "reference_ms, candidate_ms"
_VERDICTS = f"""
    SELECT {_COLUMNS}, {_ROUNDS} FROM verdicts JOIN run_verdicts USING (verdict_id) JOIN runs USING (run_id)
    JOIN (SELECT candidate_id, origin FROM candidates) USING (candidate_id) ORDER BY run_id
"""
_SERIES = "device, protocol, baseline"
_QUESTIONS = {
    "point": "SELECT status, speedup FROM verdicts WHERE candidate_id = :candidate",
    "leaderboard": f"""
        SELECT origin, {_SERIES}, count(*), exp(avg(ln(speedup))), max(speedup) FROM (
            SELECT origin, {_SERIES}, problem_id, max(speedup) AS speedup FROM (
                SELECT origin, {_SERIES}, problem_id, candidate_id, exp(avg(ln(speedup))) AS speedup
                FROM verdicts WHERE status = 'correct' GROUP BY 1, 2, 3, 4, 5, 6)
            GROUP BY 1, 2, 3, 4, 5) GROUP BY 1, 2, 3, 4
    """,
    "speedups_by_stage": f"""
        SELECT stage, run_id, {_SERIES}, count(DISTINCT problem_id), count(DISTINCT candidate_id),
               exp(avg(ln(speedup))), max(speedup)
        FROM verdicts WHERE status = 'correct' GROUP BY 1, 2, 3, 4, 5
    """,
    "best_kernels": f"""
        SELECT problem_id, {_SERIES}, candidate_id, max(speedup) FROM (
            SELECT problem_id, {_SERIES}, candidate_id, exp(avg(ln(speedup))) AS speedup
            FROM verdicts WHERE status = 'correct' GROUP BY 1, 2, 3, 4, 5)
        GROUP BY 1, 2, 3, 4
    """,
}


def sqlite_seconds(history: Path, folder: Path) -> dict[str, float]:
    """What each question takes when a table of verdicts and one of rounds stand in SQLite, with an index."""
    path = folder / "history.sqlite"
    if not path.exists():
        partial = path.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        _fill_sqlite(history, partial)
        partial.replace(path)
    connection = sqlite3.connect(path)
    (candidate,) = connection.execute("SELECT candidate_id FROM verdicts LIMIT 1").fetchone()
    values = {"candidate": candidate}
    found = {
        name: seconds_of(lambda sql=sql: connection.execute(sql, values).fetchall())  # type: ignore[misc]
        for name, sql in _QUESTIONS.items()
    }
    rows = connection.execute("SELECT * FROM verdicts LIMIT 10000").fetchall()
    found["append"] = seconds_of(lambda: _append_sqlite(connection, rows))
    connection.rollback()
    connection.close()
    return found | {"gigabytes": path.stat().st_size / 1e9}


def json_seconds(history: Path, folder: Path) -> dict[str, float]:
    """What each question takes when it means reading files of one JSON object a line, one file a run."""
    files = folder / "json"
    if not files.exists():
        partial = folder / "json.partial"
        partial.mkdir(exist_ok=True)
        _fill_json(history, partial)
        partial.replace(files)
    paths = sorted(files.iterdir())
    first = json.loads(paths[0].open().readline())
    found = {
        "point": seconds_of(lambda: [r for r in _read(paths) if r["candidate_id"] == first["candidate_id"]]),
        "leaderboard": seconds_of(lambda: _leaderboard(paths)),
    }
    # These read and parse the same files; what is counted beside that hardly matters.
    found |= {"speedups_by_stage": found["leaderboard"], "best_kernels": found["leaderboard"]}
    rows = [json.loads(line) for line, _ in zip(paths[0].open(), range(10_000), strict=False)]
    appended = folder / "appended.jsonl"
    found["append"] = seconds_of(lambda: appended.write_text("".join(json.dumps(row) + "\n" for row in rows)))
    appended.unlink()
    return found | {"gigabytes": sum(path.stat().st_size for path in paths) / 1e9}


def _rows(history: Path) -> Iterator[list[tuple[Any, ...]]]:
    with duckdb.connect(history, read_only=True) as connection:
        answer = connection.execute(_VERDICTS)
        while rows := answer.fetchmany(FETCHED):
            yield rows


def _fill_sqlite(history: Path, path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE verdicts ({_COLUMNS})")
    connection.execute("CREATE TABLE rounds (verdict INTEGER, round INTEGER, reference_ms REAL, candidate_ms REAL)")
    verdict = 0
    for rows in _rows(history):
        connection.executemany(f"INSERT INTO verdicts VALUES ({', '.join('?' * 15)})", [row[:15] for row in rows])
        rounds = []
        for row in rows:
            verdict += 1
            pairs = zip(row[15] or (), row[16] or (), strict=True)
            rounds += [(verdict, place, *pair) for place, pair in enumerate(pairs)]
        connection.executemany("INSERT INTO rounds VALUES (?, ?, ?, ?)", rounds)
    connection.execute("CREATE INDEX by_candidate ON verdicts (candidate_id)")
    connection.execute("CREATE INDEX by_verdict ON rounds (verdict)")
    connection.commit()
    connection.close()


def _append_sqlite(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    connection.executemany(f"INSERT INTO verdicts VALUES ({', '.join('?' * 15)})", rows)
    rounds = [(number, place, 1.0, 1.0) for number in range(len(rows)) for place in range(10)]
    connection.executemany("INSERT INTO rounds VALUES (?, ?, ?, ?)", rounds)


def _fill_json(history: Path, folder: Path) -> None:
    names = [name.strip() for name in f"{_COLUMNS}, {_ROUNDS}".split(",")]
    for rows in _rows(history):
        by_run = defaultdict(list)
        for row in rows:
            by_run[row[0]].append(json.dumps(dict(zip(names, row, strict=True))) + "\n")
        for run_id, lines in by_run.items():
            with (folder / f"{run_id}.jsonl").open("a") as file:
                file.writelines(lines)


def _read(paths: list[Path]) -> Iterator[dict[str, Any]]:
    for path in paths:
        with path.open() as file:
            for line in file:
                yield json.loads(line)


def _leaderboard(paths: list[Path]) -> dict[tuple[str, ...], list[float]]:
    logs: dict[tuple[tuple[str, ...], str], list[float]] = defaultdict(list)
    for row in _read(paths):
        if row["status"] == "correct":
            key = (row["origin"], row["device"], row["protocol"], row["baseline"], row["problem_id"])
            logs[key, row["candidate_id"]].append(math.log(row["speedup"]))
    best: dict[tuple[str, ...], float] = {}
    for (solved, _), values in logs.items():
        best[solved] = max(best.get(solved, -math.inf), sum(values) / len(values))
    board: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for solved, value in best.items():
        board[solved[:4]].append(value)
    return board


def seconds_of(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started
