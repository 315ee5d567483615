"""The command `cuda-l1 sql`: a question to the history, answered on the terminal or as a file.

Imports at the top stay light.
"""

import argparse
import csv
import io
import json
import math
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from flows.commands.out_file import write_out
from flows.commands.usage import EXIT_CODES, require_another_file, require_file_place, require_history_there
from flows.project import HISTORY, project_folder
from tasks.errors import MachineError, RecordError

if TYPE_CHECKING:
    from tasks.history.questions import Answer

SHOWN_ROWS = 100
SHOWN_CHARACTERS = 80
FILE_FORMATS = ("csv", "json", "parquet")
FORMATS = ("table", *FILE_FORMATS)
PLAN = ["explain_key", "explain_value"]
"""The columns of what EXPLAIN says."""
ANY_WIDTH = 1_000_000
UNESCAPED = frozenset(range(ord(" "), 127)) - frozenset(b"\"'\\")
"""Bytes that DuckDB writes as letters where it writes bytes as text."""


def add_sql_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command with the parser of the command line."""
    parser = commands.add_parser("sql", help="ask the history in SQL, also while a run is going on", epilog=EXIT_CODES)
    parser.add_argument("query", help='such as "SELECT * FROM best_kernels", or - to read it from standard input')
    parser.add_argument("--format", choices=FORMATS, help=f"default: by the suffix of FILE, or a table of {SHOWN_ROWS}")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write all rows there instead of on the terminal")
    parser.add_argument("--history", type=Path, metavar="FILE", help=f"default: {HISTORY} of the project")
    parser.add_argument("--read-files", action="store_true", help="let the query read other files, as in read_csv()")
    parser.set_defaults(run=partial(_sql, parser))


def _sql(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    format_name = _format(parser, arguments)
    if arguments.out:
        require_file_place(parser, arguments.out)
    if arguments.history:
        require_history_there(parser, arguments.history)
    history = arguments.history or _history_of_project()
    if arguments.out:
        require_another_file(parser, arguments.out, history)
    query = _query(parser, arguments)
    content, note = _ANSWERS[format_name](history, query, read_files=arguments.read_files, is_file=bool(arguments.out))
    if arguments.out:
        write_out(arguments.out, content)
        return
    sys.stdout.buffer.write(content)  # UTF-8, also where the terminal is said to know less
    sys.stdout.flush()
    sys.stderr.write(note)


def _query(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> str:
    try:
        if arguments.query == "-":
            return sys.stdin.buffer.read().decode()
        arguments.query.encode()
        return str(arguments.query)
    except UnicodeError:
        parser.error("the question is not UTF-8")


def _history_of_project() -> Path:
    root = project_folder()
    if root is None:
        raise MachineError(
            f"{Path.cwd()} is not inside a project (no dvc.yaml and params.yaml here or above); cd into one, or name a "
            "history with --history"
        )
    return root / HISTORY


def _format(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> str:
    format_name = arguments.format or (arguments.out.suffix.removeprefix(".") if arguments.out else "table")
    if arguments.format is None and arguments.out and format_name not in FILE_FORMATS:
        suffixes = ", ".join(f".{name}" for name in FILE_FORMATS)
        parser.error(f"--out {arguments.out} has none of the suffixes {suffixes}; give one of them, or say --format")
    if format_name == "parquet" and not arguments.out:
        parser.error("Parquet is not text for a terminal; name a file with --out")
    return str(format_name)


def _as_table(history: Path, query: str, *, read_files: bool, is_file: bool) -> tuple[bytes, str]:
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from tasks.history.questions import ask

    answer = ask(history, query, max_rows=None if is_file else SHOWN_ROWS + 1, may_read_files=read_files)
    if answer.columns == PLAN:
        return "".join(
            f"{_printable(line)}\n" for _, plan in answer.rows for line in str(plan).splitlines()
        ).encode(), ""
    rows = answer.rows if is_file else answer.rows[:SHOWN_ROWS]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for place, name in enumerate(answer.columns):
        is_number = all(isinstance(row[place], int | float | None) for row in rows)
        table.add_column(Text(_printable(name)), justify="right" if is_number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(_shown(value)) for value in row))
    shown = io.StringIO()
    Console(file=shown, width=ANY_WIDTH).print(table)
    lines = [line.rstrip() for line in shown.getvalue().splitlines()]
    if rows and not is_file and sys.stdout.isatty() and max(map(cell_len, lines)) > shutil.get_terminal_size().columns:
        lines = _row_by_row(answer.columns, rows)
    note = f"the first {SHOWN_ROWS} rows; --format csv gives all\n" if len(answer.rows) > len(rows) else ""
    return ("\n".join(lines) + "\n").encode(), note


def _row_by_row(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """For a table that is too wide for the terminal: a line a value, an empty one between rows."""
    names = [_printable(name) for name in columns]
    width = max(map(len, names))
    lines: list[str] = []
    for row in rows:
        lines += [f"{name:{width}}  {_shown(value)}".rstrip() for name, value in zip(names, row, strict=True)] + [""]
    return lines[:-1]


def _as_csv(history: Path, query: str, *, read_files: bool, is_file: bool) -> tuple[bytes, str]:
    answer = _ask(history, query, read_files)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([_cell(value) for value in row] for row in answer.rows)
    return text.getvalue().encode(), ""


def _as_json(history: Path, query: str, *, read_files: bool, is_file: bool) -> tuple[bytes, str]:
    answer = _ask(history, query, read_files)
    name, count = Counter(answer.columns).most_common(1)[0]
    if count > 1:
        raise RecordError(f"{count} columns are called {name}, and JSON would keep one; rename the others with AS")
    rows = [json.dumps(dict(zip(answer.columns, map(_plain, row), strict=True))) for row in answer.rows]
    return ("[" + ",\n ".join(rows) + "]\n").encode(), ""


def _as_parquet(history: Path, query: str, *, read_files: bool, is_file: bool) -> tuple[bytes, str]:
    import pyarrow
    from pyarrow import parquet

    from tasks.history.questions import ask_for_table

    content = pyarrow.BufferOutputStream()
    parquet.write_table(ask_for_table(history, query, may_read_files=read_files), content, compression="zstd")
    return bytes(content.getvalue().to_pybytes()), ""


# Each gives the answer, and what is to be said besides to whoever is at the terminal.
_ANSWERS: dict[str, Callable[..., tuple[bytes, str]]] = {
    "table": _as_table,
    "csv": _as_csv,
    "json": _as_json,
    "parquet": _as_parquet,
}


def _ask(history: Path, query: str, read_files: bool) -> "Answer":
    from tasks.history.questions import ask

    return ask(history, query, may_read_files=read_files)


def _shown(value: object) -> str:
    """On one line of bounded length."""
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else _printable(str(_plain(value)))
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


def _printable(text: str) -> str:
    """Without the control characters that a hostile program may hold and a terminal obeys."""
    return "".join(c if c.isprintable() else " " if c in "\n\t" else "?" for c in text)


def _cell(value: object) -> object:
    if isinstance(value, list | tuple | dict):
        return json.dumps(_plain(value))
    return _plain(value) if isinstance(value, bytes) else value


def _plain(value: object) -> object:
    """As JSON has it: what is no finite number is nothing, moments are texts after ISO 8601, bytes are DuckDB's."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, bytes):
        return "".join(chr(byte) if byte in UNESCAPED else f"\\x{byte:02X}" for byte in value)
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
