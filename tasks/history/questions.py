"""Questions in SQL from outside: whatever they say, they change nothing and read nothing but the history.

Light enough for the command line, where polars would cost as much as the question.
"""

import difflib
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import duckdb

from tasks.errors import RecordError
from tasks.history.connection import reading

if TYPE_CHECKING:
    import pyarrow

_QUESTIONS = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.MULTI)  # a PIVOT
_QUESTIONS_OF_FILES = (duckdb.StatementType.SELECT,)  # EXPLAIN ANALYZE COPY would write
_WALLS = (
    "SET python_enable_replacements = false",  # else FROM path would read a variable of this program
    "SET autoload_known_extensions = false",
    "SET autoinstall_known_extensions = false",
)
_FILES_DISABLED = "file system operations are disabled"
_READ_FILES = "a question may read other files where --read-files is given"
_MISSING_TABLE = re.compile(r"Table with name \"?(.+?)\"? does not exist")
_NEAR_COUNT = 3
_AGAIN_S = 0.05
_Found = TypeVar("_Found")


class Answer:
    """What a question came to, taken whole: a writer would wait for as long as the file were read from."""

    def __init__(self, columns: list[str], rows: list[tuple[object, ...]]) -> None:
        self.columns = columns
        self.rows = rows


def ask(path: Path, sql: str, *, max_rows: int | None = None, may_read_files: bool = False) -> Answer:
    """The first rows that one question of a history comes to, or all of them.

    Args:
        may_read_files: whether the question may name other files to read, such as read_csv('mine.csv').

    Raises:
        RecordError: if the file is no history, or the SQL is not one question that it can answer.
        HistoryBusyError: if a writer held the file for too long.
    """
    with _asking(path, sql, may_read_files=may_read_files) as connection:

        def answer() -> Answer:
            asked = connection.execute(sql)
            rows = asked.fetchall() if max_rows is None else asked.fetchmany(max_rows)
            return Answer([name for name, *_ in asked.description], rows)

        return _interruptible(connection, answer)


def ask_for_table(path: Path, sql: str, *, may_read_files: bool = False) -> "pyarrow.Table":
    """Like ask, but all rows as a table of typed columns, which a Parquet file can hold."""
    with _asking(path, sql, may_read_files=may_read_files) as connection:
        return _interruptible(connection, lambda: connection.sql(sql).to_arrow_table())


def _interruptible(connection: duckdb.DuckDBPyConnection, asked: Callable[[], _Found]) -> _Found:
    """What it comes to. Ctrl-C ends it: on its own DuckDB hears of that only between some steps of a query."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        found = None
        try:
            found = thread.submit(asked)
            return found.result()
        except KeyboardInterrupt:
            while found and not found.done():
                connection.interrupt()  # which does nothing to a query that is about to begin, hence again
                wait([found], timeout=_AGAIN_S)
            raise


@contextmanager
def _asking(path: Path, sql: str, *, may_read_files: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    with reading(path) as connection:
        if not may_read_files:
            connection.execute("SET enable_external_access = false")
        for wall in _WALLS:
            connection.execute(wall)
        connection.execute("SET lock_configuration = true")
        try:
            statements = connection.extract_statements(sql)
            kinds = [statement.type for statement in statements]
            if len(kinds) != 1 or kinds[0] not in (_QUESTIONS_OF_FILES if may_read_files else _QUESTIONS):
                described = " and ".join(kind.name for kind in kinds) or "nothing"
                raise RecordError(f"not one question, but {described}: ask with a single SELECT or FROM")
            yield connection
        except duckdb.CatalogException as error:
            missing = _MISSING_TABLE.search(str(error))
            raise RecordError(_unknown(missing[1], connection) if missing else str(error)) from error
        except duckdb.PermissionException as error:
            remedy = f"\n{_READ_FILES}" if _FILES_DISABLED in str(error) else ""
            raise RecordError(f"{error}{remedy}") from error
        except (duckdb.ProgrammingError, duckdb.DataError) as error:
            raise RecordError(str(error)) from error


def _unknown(name: str, connection: duckdb.DuckDBPyConnection) -> str:
    rows = connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'").fetchall()
    names = sorted(known for (known,) in rows)
    near = difflib.get_close_matches(name, names, n=_NEAR_COUNT, cutoff=0.5)
    return f"no table or view is called {name}; " + (f"near: {', '.join(near)}" if near else f"all: {', '.join(names)}")
