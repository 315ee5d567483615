"""Problems of others: a KernelBench checkout, its data set, JSON lines as CUDA-L1 released, or a folder of that format.

Unlike the folders of params.yaml, which are ours to mend, such a source may hold anything: what is malformed is told
of and left out.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tasks.errors import ProblemError
from tasks.problems.catalogue import LEVEL_FOLDER
from tasks.problems.problem import Problem, Split
from tasks.problems.problem_sets import problem_set_of

KERNELBENCH = "kernelbench"
COLUMNS = (("level_id", "task_id", "ref_code"), ("level", "name", "code"))
"""Level, name and reference, as CUDA-L1's files and KernelBench's data set call them."""
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_NUMBER = re.compile(r"level(\d+)/(\d+)(?:_.*)?")
MAX_WORDS = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class ProblemSource:
    """What was read from one source."""

    problem_set: str
    problems: Mapping[str, Problem]
    """By id, in order of level and number."""
    mistakes: tuple[str, ...]
    """What was left out, each with its place and the reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Item:
    """One reference as it was found."""

    where: str
    problem_id: str
    level: int
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Malformed:
    """What is no reference, and where."""

    words: str


def read_problems(source: str, *, precision: str = "fp32") -> ProblemSource:
    """All problems of a source that can be read, each tagged with the problem set.

    No policy is trained on them here, so all count as held out, each as a family of its own.

    Args:
        source: a folder or a file, or the name of a data set on the Hugging Face hub.
        precision: how exactly candidates must compute.

    Raises:
        ProblemError: if there is no such source, or it holds no problem at all.
    """
    name, items = _opened(source)
    problems: dict[str, Problem] = {}
    mistakes: list[str] = []
    for item in items:
        if isinstance(item, _Malformed):
            mistakes.append(item.words)
        elif item.problem_id in problems:
            mistakes.append(f"{item.where}: {item.problem_id} was there before; only the first is kept")
        else:
            try:
                problems[item.problem_id] = _problem(item, precision)
            except (ProblemError, RecursionError, MemoryError) as error:
                mistakes.append(f"{item.where}: {error or type(error).__name__}"[:MAX_WORDS])
    if not problems:
        raise ProblemError("\n  ".join([f"{source} holds no problem in KernelBench format", *mistakes[:5]]))
    problem_set = problem_set_of((problem.source for problem in problems.values()), otherwise=name)
    ordered = sorted(problems.values(), key=lambda problem: (problem.level, *_natural(problem.problem_id)))
    return ProblemSource(
        problem_set=problem_set,
        problems={problem.problem_id: replace(problem, problem_set=problem_set) for problem in ordered},
        mistakes=tuple(mistakes),
    )


def level_and_number(problem_id: str) -> tuple[int, int] | None:
    """What KernelBench counts its problems by; None for the id of another problem.

    >>> level_and_number("level1/12_Matmul_with_diagonal_matrices_"), level_and_number("level1/12")
    ((1, 12), (1, 12))
    """
    found = _NUMBER.fullmatch(problem_id)
    return (int(found[1]), int(found[2])) if found else None


def read_json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Where each line stands, in words, and the object that it holds; None where it holds none.

    Raises:
        ProblemError: if the file cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            yield f"{path.name}, line {number}", row if isinstance(row, dict) else None


def may_be_data_set(source: str) -> bool:
    """Whether it is named like a data set on the Hugging Face hub, OWNER/NAME."""
    return _HUB_NAME.fullmatch(source) is not None


def _opened(source: str) -> tuple[str, Iterator[_Item | _Malformed]]:
    """What to call the source's set where its content is unknown, and its items."""
    path = Path(source)
    if path.is_file():
        return KERNELBENCH, (_of_row(row, where) for where, row in read_json_lines(path))
    if path.is_dir():
        for folder, name in ((path / "KernelBench", KERNELBENCH), (path, path.resolve().name)):
            if folder.is_dir() and any(LEVEL_FOLDER.fullmatch(child.name) for child in folder.iterdir()):
                return name, _of_folder(folder)
        return KERNELBENCH, _of_data_set(source)
    if may_be_data_set(source):
        return KERNELBENCH, _of_data_set(source)
    raise ProblemError(
        f"there is no {source}; give a folder, a file, or a data set such as ScalingIntelligence/KernelBench"
    )


def _of_folder(folder: Path) -> Iterator[_Item | _Malformed]:
    for path in sorted(folder.glob("level*/**/*.py")):
        inner = path.relative_to(folder)
        level = LEVEL_FOLDER.fullmatch(inner.parts[0])
        if level is None:
            yield _Malformed(words=f"{inner}: {inner.parts[0]} is no level, such as level1")
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            yield _Malformed(words=f"{inner}: cannot be read: {error}")
            continue
        problem_id = inner.with_suffix("").as_posix()
        yield _Item(where=str(inner), problem_id=problem_id, level=int(level[1]), source=text)


def _of_data_set(name: str) -> Iterator[_Item | _Malformed]:
    """The rows of a data set on the hub or in a local folder of Parquet files, whatever its splits are called."""
    import datasets

    try:
        found = datasets.load_dataset(name)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        hint = "; a folder of problems in files has folders such as level1" if Path(name).is_dir() else ""
        raise ProblemError(f"the data set {name} cannot be loaded: {error}{hint}") from error
    for split, rows in found.items():
        for number, row in enumerate(rows, start=1):
            yield _of_row(row, f"{split}, row {number}")


def _of_row(row: dict[str, Any] | None, where: str) -> _Item | _Malformed:
    columns = next((columns for columns in COLUMNS if row is not None and set(columns) <= set(row)), None)
    if row is None or columns is None:
        wanted = " or ".join(", ".join(columns) for columns in COLUMNS)
        return _Malformed(words=f"{where}: is no object with the columns {wanted}")
    level, name, text = (row[column] for column in columns)
    if type(level) is not int or level < 1:
        return _Malformed(words=f"{where}: the level {level!r} is not a number above 0")
    problem_id = f"level{level}/{name}"
    if not isinstance(text, str) or not text.strip():
        return _Malformed(words=f"{where}: {problem_id} has no reference, but {text!r}")
    return _Item(where=where, problem_id=problem_id, level=level, source=text)


def _problem(item: _Item, precision: str) -> Problem:
    return Problem(
        problem_id=item.problem_id,
        level=item.level,
        family=item.problem_id,
        split=Split.HELD_OUT,
        source=item.source,
        precision=precision,
    )


def _natural(problem_id: str) -> tuple[int, str]:
    known = level_and_number(problem_id)
    return (known[1] if known else 0, problem_id)
