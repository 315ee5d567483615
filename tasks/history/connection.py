"""Short connections to a history file: opening, waiting for the lock, creating, migrating, and what errors mean.

DuckDB lets one process write or several read. So a connection lives for one append or one query, and has a turn for it.
Whoever finds the file locked all the same, by somebody who takes no turns, tries again a few milliseconds later.
"""

import hashlib
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow  # noqa: F401 - otherwise the first answer imports it, while everybody waits for the file

from tasks.errors import CudaL1Error, HistoryBusyError, MachineError, RecordError
from tasks.history.schema import MACROS, MIGRATIONS, STORAGE_VERSION, SUMMARIES, TABLE_MACROS, VIEWS
from tasks.history.summaries import make_summaries, repair_summaries
from tasks.history.turns import turns

WAIT_S = 10.0
RETRY_S = (0.005, 0.015)

# DuckDB has one class for most of what can happen to a file; these are its words.
_LOCKED = ("Could not set lock on file", "different configuration than existing connections", "already attached")
_DAMAGED = ("not a valid DuckDB database file", "Corrupt database file", "Could not read enough bytes", "checksum")
# A table of data, such as a CSV file, DuckDB would open as a view of an empty database.
_NO_DATABASE = ("Cannot launch in-memory database in read-only mode",)
_UNWRITABLE = ("Could not write file", "Could not fsync", "No space left")
# DuckDB takes a SQLite file for one that an extension opens, and looks for that.
_FOREIGN = ("sqlite_scanner",)
# What is left of a Ctrl-C that came while DuckDB was at work.
_INTERRUPTED = "Query interrupted"
_NEWER_FORMAT = ("Trying to read a database file with version number",)

# Within this process DuckDB does not lock but refuses or shares, depending on the mode, and turns are the process's; so
# we queue up ourselves.
_in_this_process = threading.Lock()


@contextmanager
def reading(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that cannot change the file.

    Raises:
        RecordError: if there is no file, or it is not a history this version can read.
        HistoryBusyError: if another process held the lock for too long.
    """
    if not path.exists():
        raise RecordError(f"there is no history at {path} yet; it appears with the first stage that runs")
    with _connected(path, read_only=True) as connection:
        _applied_version(connection, path)
        yield connection


@contextmanager
def writing(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection within one transaction: committed when the block ends, rolled back when it raises.

    Creates the file and its folder when they are missing and brings an older file up to date; what the block added is
    in the summaries when it ends.

    Raises:
        RecordError: if the file is not a history, or was written by a newer version; it is left as it is.
        MachineError: if the disk is full or the place cannot be written to.
        HistoryBusyError: if other processes held the lock for too long.
    """
    if not path.exists():
        _create(path)
    with _connected(path, read_only=False) as connection:
        _migrate(connection, path)
        with _transaction(connection):
            repair_summaries(connection)
            yield connection
            repair_summaries(connection)


@contextmanager
def _connected(path: Path, *, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    deadline = time.monotonic() + WAIT_S
    if not _in_this_process.acquire(timeout=WAIT_S):
        raise HistoryBusyError(_busy(path, "another thread of this process"))
    try:
        with turns(path, is_reader=read_only, deadline=deadline) as own_turns:
            connection = _open(path, own_turns, read_only=read_only, deadline=deadline)
            try:
                with _explained(path):
                    yield connection
            finally:
                connection.close()
    finally:
        _in_this_process.release()


def _open(path: Path, own_turns: Iterator[float], *, read_only: bool, deadline: float) -> duckdb.DuckDBPyConnection:
    while True:
        try:
            return _open_until(next(own_turns), path, read_only=read_only)
        except HistoryBusyError:
            if time.monotonic() > deadline:
                raise


def _open_until(deadline: float, path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    while True:
        try:
            return duckdb.connect(path, read_only=read_only)
        except duckdb.Error as error:
            if not _says(error, _LOCKED):
                raise _explanation(error, path) from error
            if time.monotonic() > deadline:
                raise HistoryBusyError(_busy(path, str(error))) from error
        time.sleep(random.uniform(*RETRY_S))


def _create(path: Path) -> None:
    """Put an empty history in place whole: a process killed on the way leaves nothing under the path."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f"{path.name}.") as scratch:
            whole = Path(scratch, path.name)
            with (
                _explained(path),
                duckdb.connect(whole, config={"storage_compatibility_version": STORAGE_VERSION}) as connection,
            ):
                connection.execute("CREATE TABLE schema_version (version INTEGER NOT NULL, views VARCHAR NOT NULL)")
                connection.execute("INSERT INTO schema_version VALUES (0, '')")
                _migrate(connection, path)
            # A link, not a rename: it fails where another process was first, whose rows a rename would lose.
            os.link(whole, path)
    except FileExistsError as error:
        if not path.is_file():
            raise MachineError(f"the history cannot be created at {path}: {error}") from error
    except OSError as error:
        raise MachineError(
            f"the history cannot be created at {path}: {error.strerror}; make its folder writable and free some space"
        ) from error


def _migrate(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    applied, applied_layers = _applied_version(connection, path)
    layers = hashlib.sha256(repr((MACROS, SUMMARIES, VIEWS, TABLE_MACROS)).encode()).hexdigest()[:16]
    if (applied, applied_layers) == (len(MIGRATIONS), layers):
        return
    with _transaction(connection):
        for name in reversed(VIEWS):
            connection.execute(f"DROP VIEW IF EXISTS {name}")
        for migration in MIGRATIONS[applied:]:
            connection.execute(migration)
        make_summaries(connection)
        for signature, expression in MACROS.items():
            connection.execute(f"CREATE OR REPLACE MACRO {signature} AS {expression}")
        for name, select in VIEWS.items():
            connection.execute(f"CREATE VIEW {name} AS {select}")
        for signature, select in TABLE_MACROS.items():
            connection.execute(f"CREATE OR REPLACE MACRO {signature} AS TABLE {select}")
        connection.execute("UPDATE schema_version SET version = ?, views = ?", [len(MIGRATIONS), layers])


def _applied_version(connection: duckdb.DuckDBPyConnection, path: Path) -> tuple[int, str]:
    try:
        ((version, views),) = connection.execute("SELECT version, views FROM schema_version").fetchall()
    except duckdb.CatalogException:
        raise RecordError(
            f"{path} holds other data and is not a history of this project; it was left as it is, use another path"
        ) from None
    if version > len(MIGRATIONS):
        raise RecordError(
            f"{path} was written by a newer version of this project (schema {version}, this one knows "
            f"{len(MIGRATIONS)}); update the project, or use another path"
        )
    return version, views


@contextmanager
def _transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    connection.begin()
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise _explanation(error, path) from error
    except RuntimeError as error:
        if str(error) == _INTERRUPTED:
            raise KeyboardInterrupt from error
        raise


def _explanation(error: duckdb.Error, path: Path) -> CudaL1Error:
    """Our error for one of DuckDB's, with the remedy."""
    if _says(error, _NEWER_FORMAT):
        return RecordError(f"{path} was written by a newer DuckDB; update duckdb, or use another path ({error})")
    if _says(error, _FOREIGN):
        return RecordError(f"{path} is a SQLite file, not a history; it was left as it is, use another path")
    if _says(error, _DAMAGED + _NO_DATABASE):
        words = "" if _says(error, _NO_DATABASE) else f" ({error})"  # there they are of something else
        return RecordError(
            f"{path} is damaged or not a DuckDB file; it was left as it is. Move it away and restore it from a copy: "
            f"the next stage starts a new one{words}"
        )
    if isinstance(error, duckdb.IOException | duckdb.OutOfMemoryException) or _says(error, _UNWRITABLE):
        return MachineError(f"{path} cannot be read or written; free some space or make it accessible ({error})")
    return RecordError(f"{path}: {error}")


def _says(error: duckdb.Error, words: tuple[str, ...]) -> bool:
    return any(word in str(error) for word in words)


def _busy(path: Path, holder: str) -> str:
    return (
        f"{path} was locked for {WAIT_S:g} s; close the DuckDB shell or notebook that holds it open, or end the stage "
        f"that does ({holder})"
    )
