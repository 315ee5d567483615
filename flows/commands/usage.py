"""What all commands have in common: their exit codes, and how they look at places before there is any work to lose.

Whatever is wrong with the command line itself, a file that is not there included, is wrong usage. Imports at the top
stay light.
"""

import argparse
import os
from pathlib import Path

from flows.project import HISTORY, project_folder

EXIT_CODES = (
    "exit codes: 0 done, 1 something failed or cannot be used, 2 wrong usage, such as a file that is not there, 3 this "
    "machine lacks what it takes"
)


def require_there(parser: argparse.ArgumentParser, *paths: Path) -> None:
    """End the command unless all that was named is there."""
    for path in paths:
        if not path.exists():
            parser.error(f"there is no {path}")


def require_history_there(parser: argparse.ArgumentParser, history: Path) -> None:
    """End the command unless a file is where a history is said to be; whether it is one shows when it is opened."""
    if not history.exists():
        parser.error(f"there is no {history}{_remedy(history)}")
    require_no_folder(parser, history)


def _remedy(history: Path) -> str:
    root = project_folder()
    is_of_project = root is not None and history.absolute() == root / HISTORY
    return " yet; it appears with the first stage that runs" if is_of_project else "; check the path"


def require_no_folder(parser: argparse.ArgumentParser, file: Path) -> None:
    """End the command where a folder was named instead of a file."""
    if file.is_dir():
        parser.error(f"{file} is a folder; name a file")


def require_problems_there(parser: argparse.ArgumentParser, source: str) -> None:
    """End the command unless the source of problems is there, or may be a data set on the Hugging Face hub."""
    from tasks.problems.sources import may_be_data_set

    if not may_be_data_set(source):
        require_there(parser, Path(source))


def make_out_folder(parser: argparse.ArgumentParser, folder: Path) -> None:
    """Make the folder that --out names, or end the command where it cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out {folder} cannot be made a folder: {error.strerror}; name another")
    if not os.access(folder, os.W_OK | os.X_OK):
        parser.error(f"--out {folder} cannot be written to; name another, or change its permissions")


def require_file_place(parser: argparse.ArgumentParser, out: Path) -> None:
    """End the command unless a file can stand where --out says."""
    if not out.parent.is_dir():
        parser.error(f"--out {out} cannot be written: there is no folder {out.parent}")
    if out.is_dir():
        parser.error(f"--out {out} is a folder; name a file")


def require_another_file(parser: argparse.ArgumentParser, out: Path, history: Path) -> None:
    """End the command where --out would replace the history that it is about."""
    if out.exists() and history.exists() and out.samefile(history):
        parser.error(f"--out {out} is the history that is asked; name another file")
