"""A history as a folder of Parquet files, one a table, and back: small, readable anywhere, equal for equal contents."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from tasks.errors import MachineError, RecordError
from tasks.history.connection import writing
from tasks.history.copies import migrated_copy
from tasks.history.schema import MIGRATIONS, STORAGE_VERSION
from tasks.history.tables import VERSION_TABLE, literal, quoted, tables_of

MANIFEST = "manifest.json"

OnTable = Callable[[str, int, int], None]
"""Told of each table before it is worked on, with its place and how many there are."""


def export_history(path: Path, folder: Path, *, on_table: OnTable = lambda table, done, total: None) -> dict[str, int]:
    """Write every table to the folder, which is replaced whole once all is written; returns the number of rows of each.

    Where the folder is a link, the folder that it leads to is replaced and the link stays.

    Rows are sorted by their keys, and nothing tells when or where this was done: equal histories give equal bytes, as
    long as the DuckDB that writes them is the same.

    Raises:
        RecordError: if the history cannot be read, or the folder holds something else, be it beside an export.
        HistoryBusyError: if other processes held the file for too long.
        MachineError: if the folder cannot be written.
    """
    folder = folder.resolve()  # a link would be moved aside itself
    aside = folder.with_name(f".{folder.name}.replaced")
    if not folder.exists() and aside.exists():
        aside.rename(folder)  # an export was killed between the two steps of the exchange
    if folder.exists() and not (folder / MANIFEST).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RecordError(f"{folder} holds no export of a history, and is left as it is; name another folder")
    partial = folder.with_name(f".{folder.name}.partial")
    try:
        for leftover in (partial, aside):
            shutil.rmtree(leftover, ignore_errors=True)
        partial.mkdir(parents=True)
        rows = _write_tables(path, partial, on_table)
        if folder.exists():
            _require_nothing_else(folder, partial)
            folder.rename(aside)
        partial.rename(folder)
        shutil.rmtree(aside, ignore_errors=True)
    except (OSError, duckdb.Error) as error:
        raise MachineError(f"{folder} cannot be written: {error}; free some space or name another folder") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return rows


def load_export(folder: Path, path: Path, *, on_table: OnTable = lambda table, done, total: None) -> None:
    """Make a new history of what was exported, and bring it up to date.

    Raises:
        RecordError: if the folder is no whole export, or of a newer version; or if there is something at the path.
        MachineError: if there is no room.
    """
    manifest = _manifest(folder)
    if path.exists():
        raise RecordError(f"{path} exists already; an export is read into a new file")
    version = manifest["schema_version"]
    if version > len(MIGRATIONS):
        raise RecordError(
            f"{folder} was exported by a newer version of this project (schema {version}, this one knows "
            f"{len(MIGRATIONS)}); update the project"
        )
    try:
        with duckdb.connect(path, config={"storage_compatibility_version": STORAGE_VERSION}) as connection:
            connection.execute(f"CREATE TABLE {VERSION_TABLE} (version INTEGER NOT NULL, views VARCHAR NOT NULL)")
            connection.execute(f"INSERT INTO {VERSION_TABLE} VALUES (?, '')", [version])
            for migration in MIGRATIONS[:version]:
                connection.execute(migration)
            for number, name in enumerate(manifest["tables"]):
                on_table(name, number, len(manifest["tables"]))
                file = literal(folder / f"{name}.parquet")
                connection.execute(f"INSERT INTO {quoted(name)} BY NAME FROM read_parquet({file})")
    except duckdb.Error as error:
        raise MachineError(f"{folder} cannot be read into {path}: {error}") from error
    with writing(path):
        pass  # migrates the rows with their tables


def _require_nothing_else(folder: Path, partial: Path) -> None:
    """Refuse to replace a folder with files that neither the export before nor the new one has written."""
    try:
        before = {f"{name}.parquet" for name in json.loads((folder / MANIFEST).read_text())["tables"]}
    except (OSError, ValueError, KeyError, TypeError):
        before = set()  # damaged, or empty
    others = sorted({file.name for file in folder.iterdir()} - {file.name for file in partial.iterdir()} - before)
    if others:
        raise RecordError(
            f"{folder} holds {', '.join(others)} beside an export, and is left as it is; move it away or name another "
            f"folder"
        )


def _write_tables(path: Path, folder: Path, on_table: OnTable) -> dict[str, int]:
    """From a copy, so that stages go on writing to the file meanwhile."""
    with migrated_copy(path) as copy, duckdb.connect(copy, read_only=True, config={"threads": 1}) as connection:
        tables = tables_of(connection)
        rows = {}
        for number, table in enumerate(tables):
            on_table(table.name, number, len(tables))
            file = folder / f"{table.name}.parquet"
            select = f"SELECT * FROM {quoted(table.name)} ORDER BY {table.order}"
            connection.execute(f"COPY ({select}) TO {literal(file)} (FORMAT parquet, COMPRESSION zstd)")
            ((rows[table.name],),) = connection.execute(f"SELECT count(*) FROM {quoted(table.name)}").fetchall()
    manifest = {
        "schema_version": len(MIGRATIONS),
        "tables": {name: {"rows": rows[name], "sha256": _sha256(folder / f"{name}.parquet")} for name in sorted(rows)},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    return rows


def _manifest(folder: Path) -> dict[str, Any]:
    """What the folder says it holds, after a look at whether it does."""
    try:
        manifest = dict(json.loads((folder / MANIFEST).read_text()))
        sums = {name: table["sha256"] for name, table in manifest["tables"].items()}
        damaged = [name for name, expected in sums.items() if _sha256(folder / f"{name}.parquet") != expected]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{folder} is no whole export of a history: {error}; export it again") from error
    if damaged:
        raise RecordError(f"{folder} is damaged: {', '.join(damaged)} is not what was exported; restore it from a copy")
    return manifest


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
