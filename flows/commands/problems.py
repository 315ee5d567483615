"""`cuda-l1 problems`: the project's problems; or those of others, written into a folder to train on."""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flows.commands.usage import EXIT_CODES, require_problems_there


def add_problems_command(commands: Any, *, enter_project: Callable[[], Path]) -> None:
    problems = commands.add_parser(
        "problems", help="list the problems, their families and the split", epilog=EXIT_CODES
    )
    problems.add_argument(
        "--from", dest="source", metavar="SOURCE", help="a KernelBench checkout, data set, folder or JSON lines instead"
    )
    problems.add_argument(
        "--to", type=Path, metavar="FOLDER", help="write those into a new folder that the stages can train on"
    )
    problems.set_defaults(run=lambda arguments: _problems(arguments, enter_project, problems))


def _problems(
    arguments: argparse.Namespace, enter_project: Callable[[], Path], parser: argparse.ArgumentParser
) -> None:
    if arguments.source:
        require_problems_there(parser, arguments.source)
        _of_others(arguments.source, arguments.to)
    elif arguments.to:
        parser.error("--to belongs to --from")
    else:
        enter_project()
        _print_own()


def _print_own() -> None:
    from rich.console import Console
    from rich.table import Table

    from tasks.params import load_params
    from tasks.problems.catalogue import load_problems

    table = Table("problem", "family", "split")
    for problem in load_problems(load_params().problems).values():
        table.add_row(problem.problem_id, problem.family, problem.split)
    Console().print(table)


def _of_others(source: str, folder: Path | None) -> None:
    """Print the problems of a source, and all that was left out."""
    from tasks.problems.folders import write_folder
    from tasks.problems.sources import read_problems

    found = read_problems(source)
    mistakes, count = list(found.mistakes), len(found.problems)
    if folder is None:
        for problem in found.problems.values():
            sys.stdout.write(f"{problem.problem_id}  {problem.problem_set}  {problem.problem_hash}\n")
    else:
        written = write_folder(folder, found.problems.values())
        mistakes += written.mistakes
        count = len(written.families)
        for problem_id, family in written.families.items():
            sys.stdout.write(f"{problem_id}  {family}\n")
    _say(f"{count} problems of {found.problem_set}; {len(mistakes)} item(s) left out")
    for words in mistakes:
        _say(f"  {words}")
    if folder is not None:
        _say_how_to_train(folder, list(written.families.values()))


def _say_how_to_train(folder: Path, families: Sequence[str]) -> None:
    counts = Counter(families).most_common()
    _say("families: " + ", ".join(f"{family} {count}" for family, count in counts))
    _say(f"to train on them, set in params.yaml:\n  problems.folders: [{folder.resolve()}]")
    _say("  problems.held_out_families: [...]  # some of the families above")


def _say(message: str) -> None:
    sys.stderr.write(message + "\n")
