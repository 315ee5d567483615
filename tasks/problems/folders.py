"""Problems of others, written down as a folder like ours: stages can train on it, and its families can be held out."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tasks.errors import ProblemError
from tasks.problems.catalogue import CATALOGUE_NAME, LEVEL_FOLDER
from tasks.problems.families import family_of
from tasks.problems.problem import Problem

_PLAIN = re.compile(r"\w[\w.-]*(?: [\w.-]+)*", re.ASCII)
_LONGEST = 200  # letters of a name; file systems take 255 with the ending
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
        ProblemError: if the folder holds anything already or cannot be written, or no problem has such a name.
    """
    fitting, mistakes = {}, []
    for problem in problems:
        level, _, name = problem.problem_id.partition("/")
        if LEVEL_FOLDER.fullmatch(level) and _PLAIN.fullmatch(name) and len(name) <= _LONGEST:
            fitting[problem.problem_id] = problem.source
        else:
            mistakes.append(f"{problem.problem_id!r}: is no name for a file")
    families = {problem_id: family_of(source) for problem_id, source in fitting.items()}
    if not fitting:
        raise ProblemError("\n  ".join(["there is no problem to write", *mistakes[:5]]))
    try:
        if folder.exists() and any(folder.iterdir()):
            raise ProblemError(f"{folder} is not empty; give a new folder, or remove what is there")
        for problem_id, source in fitting.items():
            path = folder / f"{problem_id}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source, encoding="utf-8")
        # Last: with it the folder is whole.
        entries = {problem_id: {"family": family} for problem_id, family in families.items()}
        (folder / CATALOGUE_NAME).write_text(_HEADER + yaml.safe_dump(entries), encoding="utf-8")
    except OSError as error:
        raise ProblemError(f"{folder} cannot be written: {error.strerror or error}") from error
    return Written(families=families, mistakes=tuple(mistakes))
