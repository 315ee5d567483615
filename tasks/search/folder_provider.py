"""A provider of candidates that lie in a folder, written by whoever wrote them."""

from collections.abc import Iterator
from pathlib import Path

from tasks.errors import ProviderError
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate


class FolderProvider:
    """Every file of a folder that ends in .py, in the order of their names. Nothing of them is run here."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self._folder = folder

    def candidates(self, problem: Problem, *, seed: int) -> Iterator[Candidate]:
        seen = set()
        for path in sorted(self._folder.glob("*.py")):
            try:
                source = path.read_text()
            except (OSError, UnicodeDecodeError) as error:
                raise ProviderError(f"{path} cannot be read: {error}") from error
            if source not in seen:
                seen.add(source)
                yield Candidate(problem_id=problem.problem_id, source=source, origin=self.name, recipe=(path.stem,))
