"""A history that is truncated, corrupted or none at all: what is said of it, and that nothing makes it worse."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from history_builders import distinct, problem, run, verdict

from tasks.errors import MachineError, RecordError
from tasks.history.export import export_history
from tasks.history.hacks import HackCases
from tasks.history.inspection import inspect_history
from tasks.history.merge import merge_history
from tasks.history.schema import MIGRATIONS
from tasks.history.store import History

ROOT = Path(__file__).parent.parent
QUESTION = "SELECT * FROM verdicts JOIN candidates USING (candidate_id) ORDER BY ALL"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A history with 200 judged candidates, never to be opened for writing."""
    path = tmp_path_factory.mktemp("whole") / "history.duckdb"
    judged = distinct(200)
    verdicts = [verdict(one) for one in judged]
    History(path).append(run(), problems=[problem()], candidates=judged, verdicts=verdicts)
    return path


@pytest.fixture
def path(whole, tmp_path):
    return Path(shutil.copy(whole, tmp_path / "history.duckdb"))


def append_more(path):
    more = distinct(20, start=1000)
    History(path).append(run("another"), problems=[problem()], candidates=more, verdicts=[verdict(one) for one in more])


def merge_into_another(path):
    merge_history(path.with_name("merged.duckdb"), path)


# Everything that touches a file, but for rebuilding, which appends.
TOUCHES = {
    "query": lambda path: History(path).query(QUESTION),
    "append": append_more,
    "check": inspect_history,
    "merge from": merge_into_another,
    "merge into": lambda path: merge_history(path, path.with_name("whole.duckdb")),
    "export": lambda path: export_history(path, path.with_name("exported")),
}


def answer(path):
    """What the history says, or None where it refuses."""
    try:
        return set(map(repr, History(path).query(QUESTION).rows()))
    except RecordError:
        return None


def refusal(touch, path):
    """What was said by something that touched the file, or None where it did what it is for."""
    try:
        TOUCHES[touch](path)
    except RecordError as error:
        return str(error)
    return None


def flipped(content, rng):
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]


def flipped_in_the_header(content, rng):
    return flipped(content[: 3 * 4096], rng) + content[3 * 4096 :]


def truncated(content, rng):
    return content[: rng.randrange(len(content))]


@pytest.mark.parametrize("touch", TOUCHES)
def test_damage_anywhere_is_named_or_does_not_matter_and_is_never_made_worse(whole, path, touch):
    shutil.copy(whole, path.with_name("whole.duckdb"))
    content, right, rng = whole.read_bytes(), answer(whole), random.Random(touch)
    for spoil in (flipped, flipped, flipped, flipped_in_the_header, truncated):
        spoiled = spoil(content, rng)
        path.write_bytes(spoiled)
        before = answer(path)
        assert before in (None, right)
        said = refusal(touch, path)
        if said is None:
            # Nothing that is needed was hit; an append writes, but never what it could not read.
            assert spoil is not flipped_in_the_header
            assert answer(path) >= right
        else:
            assert str(path) in said
            assert path.read_bytes() == spoiled
            assert answer(path) == before


@pytest.mark.parametrize("touch", ["append", "check", "merge into"])
def test_a_file_whose_second_half_is_missing_is_recognised_by_what_reads_or_writes_all_of_it(path, touch):
    append_more(path.with_name("whole.duckdb"))
    os.truncate(path, path.stat().st_size // 2)
    before = path.read_bytes()
    with pytest.raises(RecordError, match="damaged") as refused:
        TOUCHES[touch](path)
    assert str(path) in str(refused.value)
    assert path.read_bytes() == before


def another_database(path):
    with duckdb.connect(path) as database:
        database.execute("CREATE TABLE someone_elses AS SELECT 42 AS answer")


def newer(path):
    History(path).append(run())
    with duckdb.connect(path) as database:
        database.execute("UPDATE schema_version SET version = ?", [len(MIGRATIONS) + 1])


FOREIGN = {
    "text": (lambda path: path.write_text("step,loss\n1,0.5\n"), "not a DuckDB file"),
    "another database": (another_database, "not a history of this project"),
    "newer": (newer, "newer version of this project"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_that_is_no_history_is_named_and_left_as_it_is_by_everything(tmp_path, kind):
    path, (make, message) = tmp_path / "history.duckdb", FOREIGN[kind]
    make(path)
    append_more(path.with_name("whole.duckdb"))
    before = path.read_bytes()
    for touch in (*TOUCHES.values(), lambda path: HackCases(path).all()):
        with pytest.raises(RecordError, match=message) as refused:
            touch(path)
        assert str(path) in str(refused.value)
    assert path.read_bytes() == before


def test_a_table_of_data_is_refused_without_words_about_a_database_in_memory(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text("step,loss\n1,0.5\n")
    with pytest.raises(RecordError, match="not a DuckDB file") as refused:
        TOUCHES["query"](path)
    assert "in-memory" not in str(refused.value)


def test_a_sqlite_file_is_named(tmp_path):
    with sqlite3.connect(tmp_path / "history.duckdb") as database:
        database.execute("CREATE TABLE t (x)")
    database.close()
    with pytest.raises(RecordError, match=r"is a SQLite file|not a history of this project"):
        TOUCHES["query"](tmp_path / "history.duckdb")


def test_a_folder_where_the_file_should_be_is_named(tmp_path):
    (tmp_path / "history.duckdb").mkdir()
    for touch in ("query", "append", "check"):
        with pytest.raises(MachineError, match=r"history\.duckdb"):
            TOUCHES[touch](tmp_path / "history.duckdb")


# Commits, and is gone before DuckDB puts what it logged into the file.
KILLED = """
import os, signal, sys
from pathlib import Path
from history_builders import distinct, problem, run, verdict
from tasks.history import connection
from tasks.history.store import History

real = connection._transaction.__wrapped__

def killed_after_commit(database):
    yield from real(database)
    os.kill(os.getpid(), signal.SIGKILL)

connection._transaction = connection.contextmanager(killed_after_commit)
more = distinct(20, start=1000)
History(Path(sys.argv[1])).append(
    run("another"), problems=[problem()], candidates=more, verdicts=[verdict(one) for one in more]
)
"""


@pytest.fixture
def with_a_log(path):
    """A history whose last writer was killed between its commit and the end of its append."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    subprocess.run([sys.executable, "-c", KILLED, path], env=environment, check=False)
    assert path.with_name("history.duckdb.wal").stat().st_size > 0
    return path


@pytest.mark.parametrize("touch", ["query", "check", "merge from", "export"])
def test_what_a_killed_writer_committed_is_read_and_stays_where_it_is(with_a_log, touch):
    log = with_a_log.with_name("history.duckdb.wal")
    before = with_a_log.read_bytes(), log.read_bytes()
    TOUCHES[touch](with_a_log)
    assert (with_a_log.read_bytes(), log.read_bytes()) == before
    assert len(answer(with_a_log)) == 220


def test_the_next_writer_takes_up_what_a_killed_one_committed(with_a_log):
    assert inspect_history(with_a_log).wal_bytes > 0
    History(with_a_log).append(run("third"))
    assert not with_a_log.with_name("history.duckdb.wal").exists()
    assert len(answer(with_a_log)) == 220
    assert inspect_history(with_a_log).mistakes == ()


def test_a_log_whose_end_was_never_written_loses_that_end_only(with_a_log):
    log = with_a_log.with_name("history.duckdb.wal")
    os.truncate(log, log.stat().st_size // 2)
    assert len(answer(with_a_log)) == 200
    append_more(with_a_log)
    assert len(answer(with_a_log)) == 220


def test_a_damaged_log_is_never_taken_for_something_else(with_a_log):
    log, rng = with_a_log.with_name("history.duckdb.wal"), random.Random(0)
    content, right = log.read_bytes(), answer(with_a_log)
    for _ in range(10):
        log.write_bytes(flipped(content, rng))
        found = answer(with_a_log)
        assert found is None or (found <= right and len(found) in (200, 220))


def test_check_counts_the_rows_and_tells_the_versions(path):
    found = inspect_history(path)
    assert found.path == str(path)
    assert found.schema_version == found.known_schema_version == len(MIGRATIONS)
    assert found.storage_version.startswith("v1.5")
    assert found.num_rows["verdicts"] == found.num_rows["candidates"] == found.num_rows["run_verdicts"] == 200
    assert found.num_rows["runs"] == 1
    assert found.mistakes == ()


def test_check_finds_rows_that_refer_to_nothing(path):
    with duckdb.connect(path) as database:
        database.execute("DELETE FROM candidates WHERE candidate_id IN (SELECT candidate_id FROM candidates LIMIT 3)")
    assert inspect_history(path).mistakes == ("verdicts: 3 row(s) whose candidate_id is not in candidates",)
