"""The history's file: what is recognised, refused and never made worse."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from history_builders import candidate, distinct, problem, run, verdict

from tasks.errors import HistoryBusyError, MachineError, RecordError
from tasks.history import connection
from tasks.history.inspection import inspect_history
from tasks.history.schema import MIGRATIONS, STORAGE_VERSION
from tasks.history.store import History
from tasks.history.turns import locks_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "history.duckdb"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A history with 200 judged candidates, of which every test has a copy."""
    path = tmp_path_factory.mktemp("whole") / "history.duckdb"
    judged = distinct(200)
    verdicts = [verdict(one) for one in judged]
    History(path).append(run(), problems=[problem()], candidates=judged, verdicts=verdicts)
    return path


@pytest.fixture
def filled(whole, path):
    return Path(shutil.copy(whole, path))


def sealed_version(path, version):
    """Make the schema's version what a later release would have written."""
    with duckdb.connect(path) as database:
        database.execute("UPDATE schema_version SET version = ?", [version])


def replaced_by_another_database(path):
    path.unlink()
    with duckdb.connect(path) as database:
        database.execute("CREATE TABLE someone_elses AS SELECT 42 AS answer")


def with_a_newer_storage_version(path):
    """DuckDB's header: 8 bytes of checksum, the magic word, then the storage version at byte 12."""
    content = bytearray(path.read_bytes())
    content[12] = 250
    path.write_bytes(content)


DAMAGE = [
    pytest.param(lambda path: os.truncate(path, path.stat().st_size // 2), "damaged", id="truncated"),
    pytest.param(lambda path: os.truncate(path, 0), "damaged", id="emptied"),
    pytest.param(lambda path: path.write_bytes(b"\0" * 100_000), "damaged", id="zeroed"),
    pytest.param(lambda path: path.write_text("step,loss\n1,0.5\n"), "damaged", id="some other file"),
    pytest.param(with_a_newer_storage_version, "damaged|newer DuckDB", id="header changed"),
    pytest.param(replaced_by_another_database, "not a history of this project", id="another database"),
    pytest.param(
        lambda path: sealed_version(path, len(MIGRATIONS) + 1), "newer version of this project", id="newer schema"
    ),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE)
def test_a_file_that_is_no_history_is_refused_by_name_and_left_as_it_is(filled, damage, message):
    damage(filled)
    before = filled.read_bytes()
    history = History(filled)
    for attempt in (lambda: history.append(run("another")), lambda: history.query("FROM verdicts")):
        with pytest.raises(RecordError, match=message) as refused:
            attempt()
        assert str(filled) in str(refused.value)
    assert filled.read_bytes() == before


@pytest.mark.parametrize("name", ["gains.csv", "gains.json", "gains.parquet", "gains.xlsx"])
def test_a_table_of_data_is_refused_in_words_that_say_that_it_is_no_history(tmp_path, name):
    """DuckDB itself opens some of them, as an empty database with a view of the data."""
    path = tmp_path / name
    path.write_text("step,loss\n1,0.5\n")
    for attempt in (lambda: History(path).query("FROM verdicts"), lambda: inspect_history(path)):
        with pytest.raises(RecordError, match=f"{path} is damaged or not a DuckDB file; it was left as it is"):
            attempt()
    with pytest.raises(RecordError, match="it was left as it is"):
        History(path).append(run())
    assert path.read_text() == "step,loss\n1,0.5\n"


def test_damage_anywhere_is_recognised_or_harmless_but_never_another_answer(filled):
    question = "SELECT * FROM verdicts JOIN candidates USING (candidate_id) ORDER BY ALL"
    whole, answer = filled.read_bytes(), History(filled).query(question)
    header, block = 3 * 4096, 256 * 1024
    refused = 0
    for start in range(header, len(whole), block):
        filled.write_bytes(whole[:start] + b"\xff" * 4096 + whole[start + 4096 :])
        try:
            found = History(filled).query(question)
        except RecordError:
            refused += 1
        else:
            assert found.equals(answer)  # the block held an index, or nothing
    assert refused > 0


def test_asking_before_anything_was_recorded_says_so_and_creates_nothing(path):
    with pytest.raises(RecordError, match=r"no history at .* yet"):
        History(path).query("FROM runs")
    assert list(path.parent.iterdir()) == []


def test_the_first_append_makes_the_folder_and_leaves_the_file_and_that_of_its_locks(tmp_path):
    path = tmp_path / "new" / "folder" / "history.duckdb"
    History(path).append(run())
    assert {file.name for file in path.parent.iterdir()} == {"history.duckdb", "history.duckdb.turns"}
    assert locks_of(path).read_bytes() == b""


def test_the_file_stays_readable_for_an_older_duckdb(filled):
    History(filled).append(run("another"))
    with duckdb.connect(filled, read_only=True) as database:
        ((tags,),) = database.execute("SELECT tags FROM duckdb_databases() WHERE database_name = 'history'").fetchall()
    assert tags["storage_version"].startswith(STORAGE_VERSION)


def test_changed_views_reach_an_existing_file(filled, monkeypatch):
    monkeypatch.setattr(connection, "VIEWS", {"num_verdicts": "SELECT count(*) AS num FROM verdicts"})
    History(filled).append(run("another"))
    assert History(filled).query("FROM num_verdicts").item() == 200


def test_an_older_file_is_migrated_with_all_it_holds(filled, monkeypatch):
    later = (*MIGRATIONS, "ALTER TABLE verdicts ADD COLUMN cost_usd DOUBLE")
    monkeypatch.setattr(connection, "MIGRATIONS", later)
    History(filled).append(run("another"))
    assert History(filled).query("SELECT count(*) FROM verdicts WHERE cost_usd IS NULL").item() == 200


def test_a_migration_that_fails_leaves_the_older_file(filled, monkeypatch):
    broken = (*MIGRATIONS, "ALTER TABLE verdicts ADD COLUMN cost_usd DOUBLE; ALTER TABLE nothing ADD COLUMN x INTEGER")
    with monkeypatch.context() as patched:
        patched.setattr(connection, "MIGRATIONS", broken)
        with pytest.raises(RecordError, match="nothing"):
            History(filled).append(run("another"))
    assert History(filled).query("SELECT count(*) FROM best_kernels").item() == 1


def test_a_place_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "data").write_text("a file where the folder should be")
    with pytest.raises(MachineError, match=re.escape(str(tmp_path / "data" / "history.duckdb"))):
        History(tmp_path / "data" / "history.duckdb").append(run())


def test_a_full_disk_is_named_and_loses_nothing_recorded_before(filled):
    """A limit on the size of files stands for the full disk: to the writer both are a write that fails."""
    script = f"""
import random
import resource
from pathlib import Path
from history_builders import candidate, problem, run, verdict
from tasks.errors import MachineError
from tasks.history.store import History

limit = Path({str(filled)!r}).stat().st_size + 4096
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
more = [candidate(random.randbytes(2000).hex()) for _ in range(4000)]
try:
    History(Path({str(filled)!r})).append(run(), candidates=more, verdicts=[verdict(one) for one in more])
except MachineError as error:
    raise SystemExit(f"named: {{error}}")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=os.path.dirname(__file__))
    assert done.stderr.startswith("named: "), done.stderr
    assert str(filled) in done.stderr
    assert History(filled).query("SELECT count(*) FROM verdicts").item() == 200
    one = candidate("class ModelNew: ...  # after the disk was freed\n")
    History(filled).append(run(), candidates=[one], verdicts=[verdict(one)])
    assert History(filled).query("SELECT count(*) FROM verdicts").item() == 201


HOLDER = """
import sys, duckdb
database = duckdb.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def hold():
    """Let another process hold a file open, as a DuckDB shell does; let it go by closing its stdin."""
    holders = []

    def start(path):
        command = [sys.executable, "-c", HOLDER, path]
        holders.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert holders[-1].stdout.readline() == "held\n"
        return holders[-1]

    yield start
    for holder in holders:
        holder.communicate()


def test_a_lock_held_for_too_long_names_the_file_and_the_remedy(filled, hold, monkeypatch):
    monkeypatch.setattr(connection, "WAIT_S", 0.3)
    hold(filled)
    for attempt in (lambda: History(filled).append(run()), lambda: History(filled).query("FROM runs")):
        with pytest.raises(HistoryBusyError, match="close the DuckDB shell") as busy:
            attempt()
        assert str(filled) in str(busy.value)


def test_a_notebook_of_this_process_that_holds_the_file_is_waited_for_too(filled, monkeypatch):
    monkeypatch.setattr(connection, "WAIT_S", 0.3)
    with duckdb.connect(filled, read_only=True), pytest.raises(HistoryBusyError, match=re.escape(str(filled))):
        History(filled).append(run())
    History(filled).append(run())
