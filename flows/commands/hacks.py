"""The command `cuda-l1 hacks`: the collection of hacking cases, and what one file has in common with it.

Imports at the top stay light.
"""

import argparse
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from flows.commands.usage import EXIT_CODES, require_there
from flows.project import HISTORY, project_folder
from tasks.errors import MachineError, RecordError

if TYPE_CHECKING:
    from tasks.history.hacks import HackCases


def add_hacks_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command with the parser of the command line."""
    parser = commands.add_parser(
        "hacks", help="list, show and add hacking cases, which the reward checker is shown", epilog=EXIT_CODES
    )
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")

    listing = actions.add_parser("list", help="all cases, the oldest first", epilog=EXIT_CODES)
    listing.set_defaults(run=_list)

    show = actions.add_parser("show", help="one case with its source", epilog=EXIT_CODES)
    show.add_argument("case", metavar="ID", help="its id, the beginning of it, or its name")
    show.set_defaults(run=_show)

    add = actions.add_parser("add", help="add a program that was paid for what it did not do", epilog=EXIT_CODES)
    add.add_argument("file", type=Path, metavar="FILE")
    add.add_argument("--group", required=True, help='the kind of hack, such as "replay by pointer"')
    add.add_argument("--words", default="", help="what it does, for people and for the checker's prompt")
    add.add_argument("--name", help="default: the file's name")
    add.set_defaults(run=partial(_add, add))

    check = actions.add_parser(
        "check", help="static findings in a file, and the most similar cases; decides nothing", epilog=EXIT_CODES
    )
    check.add_argument("file", type=Path, metavar="FILE")
    check.set_defaults(run=partial(_check, check))


def _list(arguments: argparse.Namespace) -> None:
    cases = _cases().all()
    rows = [(case.case_id, _day(case.added_at), case.origin, case.group, case.name) for case in cases]
    if not rows:
        _write("no hacking cases yet; `cuda-l1 hacks add FILE --group ...` adds one")
        return
    rows.insert(0, ("id", "added", "origin", "group", "name"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        _write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _show(arguments: argparse.Namespace) -> None:
    case = _cases().get(arguments.case)
    _write(f"{case.case_id}  {case.name}\ngroup: {case.group}\nadded: {_day(case.added_at)} by {case.origin}")
    if case.words:
        _write(case.words)
    _write(f"\n{case.source.rstrip()}")


def _add(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    from tasks.history.hacks import case_of

    require_there(parser, arguments.file)
    name = arguments.name or arguments.file.stem
    case = case_of(name=name, group=arguments.group, source=_read(arguments.file), words=arguments.words, origin="user")
    if _cases().add(case):
        _write(f"added {case.case_id}  {case.name}")
    else:
        _write(f"{arguments.file} is in the collection already as {case.case_id}; nothing was changed")


def _check(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    from tasks.history.hacks import most_similar
    from tasks.judge.opinions.findings import static_findings

    require_there(parser, arguments.file)
    source = _read(arguments.file)
    for finding in static_findings(source):
        _write(f"{finding.tier:<10}  line {finding.line:<4}  {finding.name}: {finding.words}")
    for case, similarity in most_similar(source, _cases().all()):
        _write(f"similar {similarity:.2f}  {case.case_id}  {case.group}: {case.name}")


def _cases() -> "HackCases":
    from tasks.history.hacks import HackCases

    root = project_folder()
    if root is None:
        raise MachineError(
            f"{Path.cwd()} is not inside a project (no dvc.yaml and params.yaml here or above); cd into one"
        )
    return HackCases(root / HISTORY)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error


def _day(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d")


def _write(text: str) -> None:
    """To the terminal, whose control characters a hostile program may hold."""
    sys.stdout.write("".join(c if c.isprintable() or c in "\n\t" else "?" for c in text) + "\n")
