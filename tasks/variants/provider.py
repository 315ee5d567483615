"""The seam to whatever writes variants without being told what became of them: one new class with these two members.

Language models are asked until enough of their answers are right, which takes verdicts: see flows/parts/buying.py.
"""

from collections.abc import Iterator
from typing import Protocol

from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate


class Provider(Protocol):
    """Anything that writes candidates for a problem without having been trained here."""

    name: str
    """Becomes the candidates' origin."""

    def candidates(self, problem: Problem, *, seed: int) -> Iterator[Candidate]:
        """Yield candidates for one problem, each text at most once; the caller stops when it has enough.

        Equal seeds give equal candidates where the provider is deterministic.

        Raises:
            ProviderError: if the provider cannot answer; the caller may retry.
        """
        ...
