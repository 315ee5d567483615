"""Taking another file's rows into a history: what is new once, what contradicts reported and left as it is here."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tasks.errors import RecordError
from tasks.history.connection import writing
from tasks.history.copies import migrated_copy
from tasks.history.tables import Table, literal, quoted, tables_of

RUNS = "runs"
PROMPTS = "prompts"
NAMED_CONFLICTS = 3
_PROMPTS_OF_KEPT_SAMPLES = """
    FROM (SELECT prompt_id FROM other.main.samples SEMI JOIN main.samples USING (run_id, step, number))
    EXCEPT (SELECT prompt_id FROM other.main.samples ANTI JOIN main.samples USING (run_id, step, number))
"""
"""The other file's prompts whose every sample is here already: it stays as it is here, and has its own prompt."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableMerge:
    """What became of one table's rows."""

    table: str
    num_rows: int
    """In the other file."""
    num_added: int
    num_conflicts: int
    """Rows that are here under the same key with other content; they stay as they are here."""
    columns: dict[str, int]
    """Columns that differ -> in so many rows."""
    keys: tuple[str, ...]
    """The first of the conflicting rows' keys."""


def merge_history(
    target: Path, source: Path, *, on_table: Callable[[str, int, int], None] = lambda table, done, total: None
) -> list[TableMerge]:
    """Add all rows of one history to another, or none. The source stays as it is, also when it is of an older version.

    A text that both found is one candidate; who found it first stays as it is here. So does a sample under the same
    number, and the prompt that the other file has for it is left out.

    Args:
        on_table: told of each table before it is merged, with its place and how many there are.

    Raises:
        RecordError: if the source is not there, is no history this version can read, is the target itself, or holds a
            run that is another one here: the rows of two runs would mix under one name.
        HistoryBusyError: if other processes held a file for too long.
        MachineError: if there is no room.
    """
    if not source.exists():
        raise RecordError(f"there is no history at {source}; check the path")
    if target.exists() and target.samefile(source):
        raise RecordError(f"{source} is the file to merge into; name another")
    with migrated_copy(source) as copy, writing(target) as connection:
        connection.execute(f"ATTACH {literal(copy)} AS other (READ_ONLY)")
        tables = tables_of(connection)
        merged = []
        for number, table in enumerate(tables):
            on_table(table.name, number, len(tables))
            merged.append(_merge_table(connection, table, source))
        return merged


def _merge_table(connection: duckdb.DuckDBPyConnection, table: Table, source: Path) -> TableMerge:
    ours, theirs = quoted(table.name), f"other.main.{quoted(table.name)}"
    num_conflicts, columns, keys = _conflicts(connection, table, ours, theirs)
    if table.name == RUNS and num_conflicts:
        raise RecordError(
            f"{source} holds {num_conflicts} run(s) that are recorded here with other contents "
            f"({', '.join(columns)}), such as {keys[0]}; nothing of it was merged"
        )
    is_new = f"ANTI JOIN {ours} USING ({table.order})" if table.other_columns else f"EXCEPT FROM {ours}"
    # Prompts come before samples in the order of tables: those that are here are those from before the merge.
    is_wanted = f"WHERE prompt_id NOT IN ({_PROMPTS_OF_KEPT_SAMPLES})" if table.name == PROMPTS else ""
    ((num_added,),) = connection.execute(f"INSERT INTO {ours} BY NAME FROM {theirs} {is_new} {is_wanted}").fetchall()
    ((num_rows,),) = connection.execute(f"SELECT count(*) FROM {theirs}").fetchall()
    return TableMerge(
        table=table.name,
        num_rows=num_rows,
        num_added=num_added,
        num_conflicts=num_conflicts,
        columns=columns,
        keys=tuple(keys),
    )


def _conflicts(
    connection: duckdb.DuckDBPyConnection, table: Table, ours: str, theirs: str
) -> tuple[int, dict[str, int], list[str]]:
    """How many rows contradict ours, in which columns, and the first of their keys."""
    if not table.other_columns:
        return 0, {}, []
    differs = {name: f"(ours.{quoted(name)} IS DISTINCT FROM theirs.{quoted(name)})" for name in table.other_columns}
    sums = ", ".join(f"count(*) FILTER ({condition})" for condition in differs.values())
    ((num_rows, keys, *counts),) = connection.execute(
        f"""
        SELECT count(*), list(concat_ws('/', {table.order}) ORDER BY {table.order})[:{NAMED_CONFLICTS}], {sums}
        FROM {ours} AS ours JOIN {theirs} AS theirs USING ({table.order})
        WHERE {" OR ".join(differs.values())}
        """
    ).fetchall()
    return num_rows, {name: count for name, count in zip(differs, counts, strict=True) if count}, keys or []
