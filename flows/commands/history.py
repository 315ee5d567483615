"""The command `cuda-l1 history`: rebuilding, merging, exporting, comparing and checking history files.

Imports at the top stay light.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from flows.commands.usage import EXIT_CODES, require_history_there, require_no_folder, require_there
from flows.project import HISTORY, project_folder
from flows.snapshot import SNAPSHOT
from tasks.errors import MachineError, RecordError

if TYPE_CHECKING:
    from tasks.history.difference import Change, Judged
    from tasks.history.merge import TableMerge

MERGE_EXIT_CODES = (
    "exit codes: 0 done, 1 a file was refused or is not there, and the others are merged, 2 wrong usage, 3 this "
    "machine lacks what it takes"
)


def add_history_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command with the parser of the command line."""
    parser = commands.add_parser(
        "history", help="rebuild, merge, export, compare and check history files", epilog=EXIT_CODES
    )
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")

    rebuild = actions.add_parser(
        "rebuild", help="from the stages' outputs, or from an export; adds what is missing", epilog=EXIT_CODES
    )
    rebuild.add_argument("--out", type=Path, metavar="FILE", help="default: the project's history")
    rebuild.add_argument("--from", type=Path, metavar="FOLDER", dest="export", help="an export, instead of data/")
    rebuild.set_defaults(run=partial(_rebuild, rebuild))

    merge = actions.add_parser(
        "merge", help="take other machines' files into the project's history", epilog=MERGE_EXIT_CODES
    )
    merge.add_argument("files", type=Path, nargs="+", metavar="FILE")
    merge.set_defaults(run=_merge)

    export = actions.add_parser(
        "export", help="one Parquet file a table, for DVC; equal histories give equal files", epilog=EXIT_CODES
    )
    export.add_argument("folder", type=Path, nargs="?", metavar="FOLDER", help=f"default: {SNAPSHOT}")
    export.set_defaults(run=_export)

    diff = actions.add_parser("diff", help="what run B found otherwise than run A", epilog=EXIT_CODES)
    for name in ("run_a", "run_b"):
        diff.add_argument(name, metavar=name.upper(), help="a run id or its beginning, a stage, or stage@commit")
    diff.add_argument("--json", action="store_true", help="everything, for programs")
    diff.set_defaults(run=_diff)

    check = actions.add_parser(
        "check", help="what a file is, what it holds and whether all of it can be read", epilog=EXIT_CODES
    )
    check.add_argument("file", type=Path, nargs="?", metavar="FILE", help="default: the project's history")
    check.add_argument("--json", action="store_true", help="for programs")
    check.set_defaults(run=partial(_check, check))


def _rebuild(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    from flows.commands.history_rebuild import LOST, rebuild_history

    if arguments.export:
        require_there(parser, arguments.export)
    if arguments.out:
        require_no_folder(parser, arguments.out)
    folder, out = _absolute(arguments.export), _absolute(arguments.out)
    _enter_project()
    out = out or HISTORY
    if folder:
        _load(folder, out)
        return
    for stage in rebuild_history(out):
        found = (
            f"is there already as {stage.run_id}"
            if stage.was_there
            else f"{stage.num_verdicts} verdicts, {stage.num_samples} samples and {stage.num_costs} costs "
            f"as {stage.run_id}"
            + (f"; {stage.num_left_out} verdicts on problems or texts that are gone" if stage.num_left_out else "")
        )
        _write(f"{stage.stage}: {found}")
    _write("\n".join(["not under data/, hence not rebuilt:", *(f"  {words}" for words in LOST)]))


def _load(folder: Path, out: Path) -> None:
    """An export into a scratch file, and from there whatever is missing: the file may hold some of it."""
    from tasks.history.export import load_export
    from tasks.history.merge import merge_history

    with tempfile.TemporaryDirectory(prefix="history-") as scratch, _tables("reading") as on_table:
        loaded = Path(scratch, "history.duckdb")
        load_export(folder, loaded, on_table=on_table)
        _say_merged(folder, merge_history(out, loaded))


def _merge(arguments: argparse.Namespace) -> int:
    from tasks.history.merge import merge_history

    files = [path.absolute() for path in arguments.files]
    _enter_project()
    num_refused = 0
    for file in files:
        try:
            with _tables(f"merging {file.name}") as on_table:
                merged = merge_history(HISTORY, file, on_table=on_table)
        except (RecordError, MachineError) as error:
            # Each file is merged whole or not at all, and the others are none the worse for it.
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            num_refused += 1
        else:
            _say_merged(file, merged)
    return 1 if num_refused else 0


def _say_merged(source: Path, merged: "Sequence[TableMerge]") -> None:
    added = ", ".join(f"{table.num_added} {table.table}" for table in merged if table.num_added)
    _write(f"{source}: {f'added {added}' if added else 'nothing that is not here already'}")
    for table in merged:
        if table.num_conflicts:
            columns = ", ".join(f"{name} {count}" for name, count in table.columns.items())
            num_more = table.num_conflicts - len(table.keys)
            more = f" and {num_more} more" if num_more else ""
            _write(
                f"  {table.num_conflicts} {table.table} are here with other contents ({columns}) and stay as they are "
                f"here: {', '.join(table.keys)}{more}"
            )


def _export(arguments: argparse.Namespace) -> None:
    from tasks.history.export import export_history

    folder = _absolute(arguments.folder)
    _enter_project()
    folder = folder or SNAPSHOT
    with _tables("exporting") as on_table:
        rows = export_history(HISTORY, folder, on_table=on_table)
    _write(f"{folder}: {', '.join(f'{count} {table}' for table, count in rows.items() if count) or 'no rows'}")


def _diff(arguments: argparse.Namespace) -> None:
    from tasks.history.difference import compare_runs
    from tasks.history.store import History

    _enter_project()
    found = compare_runs(History(HISTORY), arguments.run_a, arguments.run_b)
    if arguments.json:
        _write(json.dumps(asdict(found), indent=1))
        return
    _write(f"A: {found.run_a} ({'; '.join(found.conditions_a)})\nB: {found.run_b} ({'; '.join(found.conditions_b)})")
    _write(f"candidates judged: {found.num_a} in A, {found.num_b} in B, {found.num_shared} in both")
    for title, changes in (
        ("other status", found.statuses),
        ("other speedup", found.speedups),
        ("problems won in B only", found.new_wins),
        ("problems won in A only", found.lost_wins),
    ):
        _write(f"\n{title}: {len(changes) or 'none'}")
        _write_table([_cells(change) for change in changes])


def _cells(change: "Change") -> tuple[str, ...]:
    judged = change.after or change.before
    candidate_id = judged.candidate_id if judged else ""
    return ("  " + change.problem_id, candidate_id, _value(change.before), "->", _value(change.after))


def _value(judged: "Judged | None") -> str:
    if judged is None:
        return "nothing correct"
    if judged.speedup is None:
        return judged.status
    return f"{judged.speedup:.2f}x ({judged.speedup_low:.2f} to {judged.speedup_high:.2f})"


def _check(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    from tasks.history.inspection import inspect_history

    file = _absolute(arguments.file)
    if file is None:
        _enter_project(", or name the FILE to check")
    else:
        require_history_there(parser, file)
    with _tables("reading") as on_table:
        found = inspect_history(file or HISTORY, on_table=on_table)
    if arguments.json:
        _write(json.dumps(asdict(found), indent=1))
        return 1 if found.mistakes else 0
    older = found.schema_version < found.known_schema_version
    _write(
        f"{found.path}: a history of schema {found.schema_version} (this version knows {found.known_schema_version}"
        f"{', the next append migrates it' if older else ''}), for DuckDB {found.storage_version}, "
        f"{found.size_bytes} bytes{f' and {found.wal_bytes} bytes in its log' if found.wal_bytes else ''}"
    )
    _write_table([("  " + table, str(count)) for table, count in found.num_rows.items()])
    _write("\n".join(found.mistakes) or "every row can be read, is there once and is found by its key")
    return 1 if found.mistakes else 0


@contextmanager
def _tables(desc: str) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar, and what tells it of a table that is begun."""
    from tqdm import tqdm

    with tqdm(desc=desc, unit="table", leave=False, file=sys.stderr, disable=None) as bar:

        def on_table(name: str, done: int, total: int) -> None:
            bar.total = total
            bar.set_postfix_str(name)
            bar.update(done - bar.n)

        yield on_table


def _absolute(path: Path | None) -> Path | None:
    """As the user means it, before the project's folder becomes the current one."""
    return path.absolute() if path else None


def _enter_project(or_else: str = "") -> None:
    root = project_folder()
    if root is None:
        raise MachineError(
            f"{Path.cwd()} is not inside a project (no dvc.yaml and params.yaml here or above); cd into one{or_else}"
        )
    os.chdir(root)


def _write_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        _write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
