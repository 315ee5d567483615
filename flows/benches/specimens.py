"""A folder of candidates that declare their problem and the verdict they deserve, such as tests/kernels, as data.

Files stand in honest/ (must be paid), hostile/ (must not) and broken/ (fail by accident), problems in problems/. Each
file declares as literals PROBLEM (a file of problems/) and EXPECTED (a status, or a tuple of them), and may declare
TRACK, MAX_SPEEDUP, PRECISION and RIGHT_WHERE, in words the machines on which it is right; a hostile one declares GROUP,
the kind of hack that it is. Nothing here runs any.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.errors import RecordError
from tasks.problems.problem import Problem, Split
from tasks.variants.candidate import Candidate

KINDS = ("broken", "honest", "hostile")
_DECLARATION = re.compile(
    r"^(PROBLEM|EXPECTED|TRACK|MAX_SPEEDUP|PRECISION|GROUP|RIGHT_WHERE) = (.+?)\r?$", flags=re.MULTILINE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Specimen:
    """One candidate of a collection."""

    name: str
    """The path below the collection without its suffix, such as "hostile/zeros"."""
    problem: Problem
    candidate: Candidate
    declared: Mapping[str, Any]

    @property
    def source(self) -> str:
        return self.candidate.source

    @property
    def expected(self) -> tuple[str, ...]:
        """The statuses that are right."""
        expected = self.declared["EXPECTED"]
        return (expected,) if isinstance(expected, str) else tuple(expected)


def read_collection(folder: Path) -> list[Specimen]:
    """All candidates of a collection, in the order of their names.

    Raises:
        RecordError: if there is none, or one declares no problem of the collection.
    """
    paths = [path for kind in KINDS for path in sorted((folder / kind).glob("*.py"))]
    if not paths:
        raise RecordError(f"{folder} holds no candidates: it needs files such as honest/NAME.py")
    return [read_specimen(path) for path in paths]


def read_specimen(path: Path) -> Specimen:
    """One candidate, from a folder of a collection.

    Raises:
        RecordError: if it declares no problem of the collection.
    """
    folder = path.parent.parent
    source = path.read_bytes().decode()  # as it stands: some end their lines otherwise
    try:
        declared = {name: ast.literal_eval(value) for name, value in _DECLARATION.findall(source)}
        problem = folder / "problems" / f"{declared['PROBLEM']}.py"
        if not declared["EXPECTED"] or not problem.is_file():
            raise ValueError(declared)
    except (KeyError, SyntaxError, ValueError) as error:
        raise RecordError(f"{path} declares no PROBLEM and EXPECTED that can be read: {error!r}") from None
    return Specimen(
        name=str(path.relative_to(folder).with_suffix("")),
        problem=read_problem(problem, precision=declared.get("PRECISION", "fp32")),
        candidate=Candidate(problem_id=f"collection/{problem.stem}", source=source, origin="collection"),
        declared=declared,
    )


def read_problem(path: Path, *, precision: str = "fp32") -> Problem:
    """A problem of a collection."""
    return Problem(
        problem_id=f"collection/{path.stem}",
        level=1,
        family=path.stem,
        split=Split.TRAIN,
        source=path.read_text(),
        precision=precision,
    )
