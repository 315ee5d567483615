"""Which tables a history has and what tells their rows apart, as the file itself says."""

from dataclasses import dataclass

import duckdb

VERSION_TABLE = "schema_version"
"""Describes the file and is no part of what it remembers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """One table of a history."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    """The primary key; all columns where there is none."""

    @property
    def other_columns(self) -> tuple[str, ...]:
        return tuple(column for column in self.columns if column not in self.key)

    @property
    def order(self) -> str:
        """The key as SQL's ORDER BY and USING want it."""
        return ", ".join(map(quoted, self.key))


def tables_of(connection: duckdb.DuckDBPyConnection) -> list[Table]:
    """The tables that hold rows of the history, by name."""
    rows = connection.execute(
        """
        SELECT table_name, list(column_name ORDER BY column_index), any_value(constraint_column_names)
        FROM duckdb_columns()
        JOIN duckdb_tables() USING (database_name, schema_name, table_name)
        LEFT JOIN (FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY')
            USING (database_name, schema_name, table_name)
        WHERE database_name = current_database() AND schema_name = 'main' AND table_name != ?
        GROUP BY table_name ORDER BY table_name
        """,
        [VERSION_TABLE],
    ).fetchall()
    return [Table(name=name, columns=tuple(columns), key=tuple(key or columns)) for name, columns, key in rows]


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: object) -> str:
    """A text as SQL takes it where no parameter is allowed."""
    return "'" + str(value).replace("'", "''") + "'"
