"""Problems of others, written down as a folder like ours: stages can train on it, and its families can be held out."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tasks.errors import ProblemError
from tasks.problems.catalogue import CATALOGUE_NAME
from tasks.problems.families import family_of
from tasks.problems.problem import Problem

_PLAIN = re.compile(r"\w[\w.-]*(?: [\w.-]+)*", re.ASCII)
_HEADER = "# The family of every problem, by the heaviest operator of its reference. A split never cuts through one.\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """What became of the problems."""

    families: Mapping[str, str]
    """By problem id, of those that were written."""
    mistakes: tuple[str, ...]


def write_folder(folder: Path, problems: Iterable[Problem]) -> Written:
    """Write each problem as level<n>/<name>.py, and catalogue.yaml with their families.

    A source decides what its problems are called; one whose name is no plain file name is left out.

    Raises:
        ProblemError: if the folder holds anything already, or cannot be written.
    """
    families, mistakes = {}, []
    try:
        if folder.exists() and any(folder.iterdir()):
            raise ProblemError(f"{folder} is not empty; give a new folder, or remove what is there")
        for problem in problems:
            level, *names = problem.problem_id.split("/")
            if len(names) != 1 or not _PLAIN.fullmatch(names[0]):
                mistakes.append(f"{problem.problem_id!r}: is no name for a file")
                continue
            path = folder / level / f"{names[0]}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(problem.source, encoding="utf-8")
            families[problem.problem_id] = family_of(problem.source)
        # Last: with it the folder is whole.
        entries = {problem_id: {"family": family} for problem_id, family in families.items()}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CATALOGUE_NAME).write_text(_HEADER + yaml.safe_dump(entries), encoding="utf-8")
    except OSError as error:
        raise ProblemError(f"{folder} cannot be written: {error.strerror or error}") from error
    return Written(families=families, mistakes=tuple(mistakes))
