"""`cuda-l1 report`: where the newest report is; or a report of a whole history, whatever was recorded in it."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flows.commands.out_file import write_out
from flows.commands.usage import EXIT_CODES, require_another_file, require_file_place, require_history_there
from tasks.errors import MachineError


def add_report_command(commands: Any, *, enter_project: Callable[[], Path]) -> None:
    report = commands.add_parser(
        "report", help="say where the newest report is, or make one of a history", epilog=EXIT_CODES
    )
    report.add_argument("--history", type=Path, metavar="FILE", help="make a page of all that this file remembers")
    report.add_argument("--out", type=Path, metavar="FILE", help="where to write it (report.html)")
    report.set_defaults(run=lambda arguments: _report(arguments, enter_project, report))


def _report(arguments: argparse.Namespace, enter_project: Callable[[], Path], parser: argparse.ArgumentParser) -> None:
    if arguments.history is not None:
        out = arguments.out or Path("report.html")
        require_history_there(parser, arguments.history)
        require_file_place(parser, out)
        require_another_file(parser, out, arguments.history)
        _say(str(write_history_report(arguments.history, out)))
        return
    if arguments.out is not None:
        parser.error("--out belongs to --history")
    root = enter_project()
    page, table = root / "data/evaluate/report.html", root / "data/evaluate/report.md"
    if not page.exists():
        raise MachineError(
            f"there is no {page} yet; `make repro` or `cuda-l1 repro` makes it, and "
            f"`cuda-l1 report --history data/history.duckdb` one of all that was ever judged"
        )
    if table.exists():
        _say(table.read_text())
    _say(str(page))


def write_history_report(history: Path, out: Path) -> Path:
    """The page of a history, in one file; an older page stays until the new one is whole.

    Raises:
        RecordError: if there is no such history, or it is damaged.
        MachineError: if the page cannot be written.
    """
    from tasks.history.store import History
    from tasks.report.exploration import explore
    from tasks.report.page import render_history

    write_out(out, render_history(explore(History(history)), name=history.name).encode())
    return out


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
