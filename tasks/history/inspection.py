"""What a file is that is said to be a history, and whether all of it can be read. Never changes it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tasks.history.connection import reading, writing
from tasks.history.copies import copied, speaking_of, wal_of
from tasks.history.schema import MIGRATIONS
from tasks.history.tables import VERSION_TABLE, Table, quoted, tables_of

# What must stand in the table to the right for every value of the column in any other table.
_REFERENCES = {"run_id": "runs", "candidate_id": "candidates", "verdict_id": "verdicts", "prompt_id": "prompts"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Inspection:
    """What was found in a history."""

    path: str
    size_bytes: int
    wal_bytes: int
    """Committed by a writer that was killed before it put them into the file; the next one takes them up."""
    schema_version: int
    known_schema_version: int
    """The newest that this version of the project knows; an older file is migrated by the next append."""
    storage_version: str
    """The oldest DuckDB that opens the file."""
    num_rows: dict[str, int]
    mistakes: tuple[str, ...]
    """Rows that are missing, doubled or not found by their key."""


def inspect_history(
    path: Path, *, on_table: Callable[[str, int, int], None] = lambda table, done, total: None
) -> Inspection:
    """Read every block of a history, on a copy, and look up every row by its key.

    Args:
        on_table: told of each table before it is read, with its place and how many there are.

    Raises:
        RecordError: if it is damaged, no history, or of a newer version; the message says which.
        HistoryBusyError: if other processes held the file for too long.
        MachineError: if there is no room for the copy.
    """
    with copied(path) as copy:
        size_bytes = copy.stat().st_size
        wal_bytes = wal_of(copy).stat().st_size if wal_of(copy).exists() else 0
        with reading(copy) as connection:
            ((version,),) = connection.execute(f"SELECT version FROM {VERSION_TABLE}").fetchall()
            ((tags,),) = connection.execute(
                "SELECT tags FROM duckdb_databases() WHERE database_name = current_database()"
            ).fetchall()
        with speaking_of(path, copy):
            num_rows, mistakes = _read_through(copy, on_table)
    return Inspection(
        path=str(path),
        size_bytes=size_bytes,
        wal_bytes=wal_bytes,
        schema_version=version,
        known_schema_version=len(MIGRATIONS),
        storage_version=tags.get("storage_version", "unknown"),
        num_rows=num_rows,
        mistakes=tuple(mistakes),
    )


def _read_through(copy: Path, on_table: Callable[[str, int, int], None]) -> tuple[dict[str, int], list[str]]:
    num_rows: dict[str, int] = {}
    mistakes: list[str] = []
    with writing(copy) as connection:
        tables = tables_of(connection)
        for number, table in enumerate(tables):
            on_table(table.name, number, len(tables))
            num_rows[table.name], found = _look_through(connection, table)
            mistakes += found
        names = {table.name for table in tables}
        for table in tables:
            for column, referred in _REFERENCES.items():
                if column in table.columns and referred in names and table.name != referred:
                    mistakes += _dangling(connection, table, column, referred)
        for table in tables:
            # Takes every key out of its index, all of which has to be read for that.
            connection.execute(f"DELETE FROM {quoted(table.name)}")
    return num_rows, mistakes


def _look_through(connection: duckdb.DuckDBPyConnection, table: Table) -> tuple[int, list[str]]:
    """The number of rows, after every value was read, and every key looked up in its index."""
    name = quoted(table.name)
    ((num_rows, num_keys, _),) = connection.execute(
        f"SELECT count(*), count(DISTINCT ({table.order})), bit_xor(hash({name})) FROM {name}"
    ).fetchall()
    if table.key == table.columns:
        return num_rows, []
    # Whatever the index does not find goes in once more; the copy is thrown away.
    ((num_unindexed,),) = connection.execute(f"INSERT INTO {name} FROM {name} ON CONFLICT DO NOTHING").fetchall()
    found = {f"{num_rows - num_keys} doubled": num_rows - num_keys, f"{num_unindexed} without a key": num_unindexed}
    return num_rows, [f"{table.name}: {words}" for words, count in found.items() if count]


def _dangling(connection: duckdb.DuckDBPyConnection, table: Table, column: str, referred: str) -> list[str]:
    ((count,),) = connection.execute(
        f"SELECT count(*) FROM {quoted(table.name)} ANTI JOIN {quoted(referred)} USING ({quoted(column)}) "
        f"WHERE {quoted(column)} IS NOT NULL"
    ).fetchall()
    return [f"{table.name}: {count} row(s) whose {column} is not in {referred}"] if count else []
