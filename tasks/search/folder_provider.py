"""A provider of candidates that lie in a folder, written by whoever wrote them."""

from collections.abc import Iterator
from pathlib import Path

import libcst as cst

from tasks.errors import ProviderError
from tasks.problems.problem import Problem
from tasks.search.texts import in_evaluation_mode, is_in_evaluation_mode
from tasks.search.user_file import KERNELBENCH_CLASS
from tasks.variants.candidate import Candidate

ENTRY = "ModelNew"


class FolderProvider:
    """Every file of a folder that ends in .py, in the order of their names. Nothing of them is run here."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self._folder = folder

    def candidates(self, problem: Problem, *, seed: int) -> Iterator[Candidate]:
        is_evaluated = is_in_evaluation_mode(cst.parse_module(problem.source), KERNELBENCH_CLASS)
        seen = set()
        for path in sorted(self._folder.glob("*.py")):
            try:
                source = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise ProviderError(f"{path} cannot be read: {error}") from error
            if is_evaluated:
                source = _as_evaluated(source)
            if source not in seen:
                seen.add(source)
                yield Candidate(problem_id=problem.problem_id, source=source, origin=self.name, recipe=(path.stem,))


def _as_evaluated(source: str) -> str:
    """The text so that its module is in evaluation mode like the reference's, which its writer need not know of.

    What is no class of the file, or does not parse, stays as it is.
    """
    try:
        module = cst.parse_module(source)
    except cst.ParserSyntaxError:
        return source
    return source if is_in_evaluation_mode(module, ENTRY) else in_evaluation_mode(module, ENTRY).code
