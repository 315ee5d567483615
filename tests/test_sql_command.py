"""`cuda-l1 sql`: what it answers, in which form, and that no question changes or reads anything else."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import polars
import pytest
from history_builders import candidate, distinct, problem, run, verdict

from flows.cli import main
from tasks.history.store import History

ROOT = Path(__file__).parent.parent
# As a shell starts it, also where pytest itself was started to ignore Ctrl-C.
WITH_CTRL_C = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from flows.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with a history of two judged candidates, of which every test has a copy."""
    project = tmp_path_factory.mktemp("project")
    for name in ("dvc.yaml", "params.yaml"):
        (project / name).write_text("")
    one, other = candidate(recipe=("fuse", "inplace")), candidate("print('\x1b[2J')\n", origin="sft")
    verdicts = [verdict(one, speedup=2.0), verdict(other, speedup=4.0)]
    History(project / "data" / "history.duckdb").append(
        run(), problems=[problem()], candidates=[one, other], verdicts=verdicts
    )
    return project


@pytest.fixture
def path(project, tmp_path):
    """A history of two judged candidates in a project."""
    shutil.copytree(project, tmp_path, dirs_exist_ok=True)
    return tmp_path / "data" / "history.duckdb"


@pytest.fixture
def ask(path, capsys, monkeypatch):
    monkeypatch.chdir(path.parent)

    def ask(*arguments):
        try:
            status = main(["sql", *map(str, arguments)])
        except SystemExit as ended:
            status = ended.code
        said = capsys.readouterr()
        return status, said.out, said.err

    return ask


BOARD = "SELECT origin, round(best_speedup, 3) AS best FROM leaderboard ORDER BY origin"


def test_a_table_has_a_header_and_a_line_a_row(ask):
    status, said, _ = ask(BOARD)
    header, rule, *rows = said.splitlines()
    assert status == 0
    assert header.split() == ["origin", "best"]
    assert set(rule) == {"─"}
    assert [row.split() for row in rows] == [["rewrites", "2"], ["sft", "4"]]


def test_csv_is_what_a_spreadsheet_reads(ask):
    _, said, _ = ask("SELECT origin, recipe, source FROM candidates ORDER BY origin", "--format", "csv")
    assert list(csv.reader(io.StringIO(said))) == [
        ["origin", "recipe", "source"],
        ["rewrites", '["fuse", "inplace"]', "class ModelNew: ...\n"],
        ["sft", "[]", "print('\x1b[2J')\n"],
    ]


def test_json_is_one_array_of_objects(ask):
    query = "SELECT origin, recipe, NULL AS nothing, 'nan'::DOUBLE AS odd, started_at FROM candidates, runs ORDER BY 1"
    rows = json.loads(ask(query, "--format", "json")[1])
    assert [row["origin"] for row in rows] == ["rewrites", "sft"]
    assert rows[0] == {
        "origin": "rewrites",
        "recipe": ["fuse", "inplace"],
        "nothing": None,
        "odd": None,
        "started_at": "2023-11-14T22:13:20",
    }
    assert json.loads(ask("FROM runs WHERE false", "--format", "json")[1]) == []


def test_bytes_are_written_as_duckdb_writes_them(ask, tmp_path):
    query = "SELECT " + ", ".join(f"'\\x{number:02X}'::BLOB AS c{number}" for number in range(256))
    (row,) = json.loads(ask(query, "--format", "json")[1])
    theirs = tmp_path / "theirs.json"
    duckdb.sql(f"COPY ({query}) TO '{theirs}' (FORMAT json)")
    assert row == json.loads(theirs.read_text())
    header, cells = csv.reader(io.StringIO(ask(query, "--format", "csv")[1]))
    assert dict(zip(header, cells, strict=True)) == row
    nested = "SELECT ['x'::BLOB] AS a, {'b': '\\xFF'::BLOB} AS s"
    assert json.loads(ask(nested, "--format", "json")[1]) == [{"a": ["x"], "s": {"b": "\\xFF"}}]
    assert "\n x\n" in ask("SELECT 'x'::BLOB AS b")[1]


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_the_suffix_of_a_file_says_the_format(ask, tmp_path, suffix):
    out = tmp_path / f"board.{suffix}"
    out.write_text("what was there before")
    assert ask(BOARD, "--out", out)[:2] == (0, "")
    frame = getattr(polars, f"read_{suffix}")(out)
    assert frame.rows() == [("rewrites", 2.0), ("sft", 4.0)]
    assert [file.name for file in out.parent.glob("*board*")] == [out.name]


def test_parquet_is_not_written_to_a_terminal(ask):
    status, said, complaint = ask(BOARD, "--format", "parquet")
    assert (status, said) == (2, "")
    assert "--out" in complaint


@pytest.mark.parametrize("name", ["board.xlsx", "board", "board.table"])
def test_a_file_whose_suffix_says_no_format_is_refused_unless_the_format_is_said(ask, tmp_path, name):
    status, _, complaint = ask(BOARD, "--out", tmp_path / name)
    assert status == 2
    assert ".csv, .json, .parquet" in complaint
    assert not (tmp_path / name).exists()
    assert ask(BOARD, "--out", tmp_path / name, "--format", "table")[0] == 0
    assert "rewrites" in (tmp_path / name).read_text()


def test_the_history_itself_is_never_the_output(ask, path):
    before = path.read_bytes()
    status, _, complaint = ask(BOARD, "--out", path, "--format", "csv")
    assert status == 2
    assert "is the history" in complaint
    assert path.read_bytes() == before


@pytest.fixture
def read_through_a_pipe(tmp_path):
    """A pipe with a name, and what it was given; whoever reads it gives up after a while."""
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    given = []
    reader = threading.Thread(target=lambda: given.append(pipe.read_bytes()), daemon=True)
    reader.start()

    def read():
        reader.join(timeout=10)
        return given[0] if given else None

    yield pipe, read
    if reader.is_alive():
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))


def test_a_pipe_is_written_into_and_stays_one(ask, read_through_a_pipe):
    pipe, read = read_through_a_pipe
    assert ask("SELECT 1 AS a", "--out", pipe)[0] == 0
    assert pipe.is_fifo()
    assert read() == b"a\n1\n"


def test_a_link_leads_to_the_answer_and_stays_one(ask, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link, file = tmp_path / "link.csv", tmp_path / "elsewhere" / "file.csv"
    link.symlink_to(file)
    for number in (1, 2):  # the file is made, then replaced
        assert ask(f"SELECT {number} AS a", "--out", link)[0] == 0
        assert link.is_symlink()
        assert file.read_text() == f"a\n{number}\n"
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_a_dash_reads_the_question_from_standard_input(ask, monkeypatch):
    given = io.BytesIO(b"SELECT count(*) AS number\nFROM candidates;\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(given))
    assert ask("-", "--format", "csv")[1] == "number\n2\n"


def test_a_question_that_is_not_utf_8_is_wrong_usage(ask, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe")))
    for question in ("-", os.fsdecode(b"SELECT \xff")):
        status, said, complaint = ask(question)
        assert (status, said) == (2, "")
        assert "the question is not UTF-8" in complaint


def test_the_answer_is_utf_8_also_where_the_terminal_is_said_to_know_less(path):
    command = [sys.executable, "-m", "flows.cli", "sql", "SELECT 'é' AS a", "--format", "csv", "--history", path]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "a\né\n".encode()), done.stderr


@pytest.mark.parametrize("format_name", ["table", "parquet"])
def test_ctrl_c_ends_a_question_that_would_never_end(path, tmp_path, format_name):
    endless = "WITH RECURSIVE t AS (SELECT 1 x UNION ALL SELECT x + 1 FROM t) SELECT max(x) FROM t"
    asked = subprocess.Popen(
        [sys.executable, "-c", WITH_CTRL_C, "sql", endless, "--history", path, "--format", format_name]
        + (["--out", tmp_path / "out"] if format_name == "parquet" else []),
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        open_files = Path(f"/proc/{asked.pid}/fd")
        while time.monotonic() < deadline and path not in {file.resolve() for file in open_files.iterdir()}:
            time.sleep(0.05)
        time.sleep(0.5)
        asked.send_signal(2)
        assert asked.communicate(timeout=20)[1] == ""
        assert asked.returncode == 130
    finally:
        asked.kill()


@pytest.fixture
def ask_on_a_terminal(ask, monkeypatch):
    """What a terminal of 80 columns shows of an answer."""

    def ask_on_a_terminal(query):
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        return ask(query)[1]

    return ask_on_a_terminal


def test_a_table_that_is_too_wide_for_the_terminal_comes_row_by_row(ask_on_a_terminal, path):
    shown = ask_on_a_terminal("FROM best_kernels, range(2)")
    columns = History(path).query("FROM best_kernels, range(2)").columns
    rows = [row.splitlines() for row in shown.split("\n\n")]
    assert [[line.split()[0] for line in row] for row in rows] == [columns, columns]
    assert rows[0][columns.index("origin")].split() == ["origin", "sft"]


def test_a_table_that_fits_the_terminal_stays_one(ask_on_a_terminal):
    assert ask_on_a_terminal(BOARD).splitlines()[0].split() == ["origin", "best"]


def test_a_plan_is_shown_whole(ask):
    _, said, _ = ask(f"EXPLAIN {BOARD}")
    assert len(said.splitlines()) > 10
    assert "…" not in said
    assert "explain_key" not in said


def test_json_cannot_hold_two_columns_of_one_name(ask):
    status, said, complaint = ask("SELECT 1 AS a, 2 AS a, 3 AS b", "--format", "json")
    assert (status, said) == (1, "")
    assert "2 columns are called a" in complaint
    assert "AS" in complaint


def test_the_terminal_gets_a_hundred_rows_and_no_control_characters(ask, path):
    History(path).append(run(), candidates=distinct(150))
    _, said, note = ask("SELECT origin, source FROM candidates ORDER BY origin DESC")
    assert len(said.splitlines()) == 2 + 100
    assert note == "the first 100 rows; --format csv gives all\n"
    assert "\x1b" not in said
    assert "print('?[2J')" in said
    assert len(ask("SELECT source FROM candidates", "--format", "csv")[1].splitlines()) > 150


HARMFUL = [
    pytest.param("DELETE FROM runs", id="delete"),
    pytest.param("DROP TABLE runs", id="drop"),
    pytest.param("CREATE TABLE mine AS FROM runs", id="create"),
    pytest.param("COPY runs TO '{folder}/stolen.csv'", id="copy"),
    pytest.param("EXPORT DATABASE '{folder}/stolen'", id="export"),
    pytest.param("ATTACH '{folder}/other.duckdb'", id="attach"),
    pytest.param("INSTALL httpfs", id="install"),
    pytest.param("LOAD httpfs", id="load"),
    pytest.param("SET enable_external_access = true", id="set"),
    pytest.param("SELECT 1; DELETE FROM runs", id="two statements"),
    pytest.param("EXPLAIN ANALYZE COPY runs TO '{folder}/stolen.csv'", id="explained copy"),
    pytest.param("FROM read_text('{folder}/secret.csv')", id="read_text"),
    pytest.param("FROM '{folder}/secret.csv'", id="a file as a table"),
    pytest.param("FROM glob('{folder}/*')", id="glob"),
    pytest.param("FROM path", id="a variable of the program"),
    pytest.param("", id="nothing"),
]


@pytest.mark.parametrize("harmful", HARMFUL)
def test_a_question_changes_nothing_and_reads_nothing_else(ask, tmp_path, path, harmful):
    (tmp_path / "secret.csv").write_text("secret\n42\n")
    before, files = path.read_bytes(), sorted(tmp_path.rglob("*"))
    status, said, complaint = ask(harmful.format(folder=tmp_path))
    assert (status, said) == (1, "")
    assert complaint.startswith("RecordError: ")
    assert path.read_bytes() == before
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.parametrize("query", ["FROM read_csv('mine.csv')", "FROM 'mine.parquet'"])
def test_a_question_of_a_file_is_told_how_it_may_read_files(ask, query):
    status, _, complaint = ask(query)
    assert status == 1
    assert "--read-files" in complaint


def test_other_files_are_read_where_that_is_asked_for_but_never_written(ask, tmp_path):
    (tmp_path / "mine.csv").write_text("origin,note\nsft,ours\n")
    query = f"SELECT note, best_speedup FROM leaderboard JOIN read_csv('{tmp_path}/mine.csv') USING (origin)"
    assert ask(query, "--read-files", "--format", "csv")[1].startswith("note,best_speedup\nours,4.0")
    for writing in ("COPY runs TO '{}/x.csv'", "EXPLAIN ANALYZE COPY runs TO '{}/x.csv'"):
        assert ask(writing.format(tmp_path), "--read-files")[0] == 1
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize(
    ("query", "named"),
    [
        pytest.param("FROM verdict", ["verdict;", "verdicts"], id="table"),
        pytest.param("FROM leaderbord", ["leaderbord", "leaderboard"], id="view"),
        pytest.param("FROM zzz", ["zzz", "best_kernels", "candidates"], id="nothing near"),
        pytest.param("SELECT speedupp FROM verdicts", ["speedupp", '"speedup"'], id="column"),
        pytest.param("SELECT geomeen(speedup) FROM verdicts", ["geomeen", "geomean"], id="function"),
        pytest.param("SELEC 1", ['syntax error at or near "SELEC"'], id="syntax"),
        pytest.param("SELECT 'a'::INTEGER", ["'a'"], id="value"),
    ],
)
def test_bad_sql_is_answered_with_what_is_near(ask, query, named):
    status, _, complaint = ask(query)
    assert status == 1
    assert all(name in complaint for name in named), complaint


def test_another_file_than_the_projects_may_be_asked(ask, tmp_path):
    other = tmp_path / "other.duckdb"
    History(other).append(run("theirs"))
    assert ask("SELECT run_id FROM runs", "--history", other, "--format", "csv")[1] == "run_id\ntheirs\n"
    status, _, complaint = ask("FROM runs", "--history", tmp_path / "none.duckdb")
    assert status == 2
    assert f"there is no {tmp_path}/none.duckdb; check the path" in complaint
    status, _, complaint = ask("FROM runs", "--history", tmp_path)
    assert status == 2
    assert f"{tmp_path} is a folder; name a file" in complaint


def test_a_place_that_cannot_be_written_to_is_named(ask, tmp_path):
    status, _, complaint = ask(BOARD, "--out", tmp_path / "none" / "board.csv")
    assert status == 2
    assert os.fspath(tmp_path / "none" / "board.csv") in complaint


def test_it_lets_go_of_the_file_before_it_writes(ask, path, monkeypatch):
    """Whoever pages through an answer must not keep a stage out."""

    class Pager(io.BytesIO):
        def write(self, content):
            with duckdb.connect(path) as stage:
                stage.execute("SELECT 1")
            return super().write(content)

    pager = Pager()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(pager))
    assert main(["sql", BOARD]) == 0
    assert b"sft" in pager.getvalue()
