"""The seam to whatever proposes candidates to a search: it sees what was found so far, exemplars with their speed."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from tasks.problems.problem import Problem
from tasks.search.found import Scored
from tasks.variants.candidate import Candidate
from tasks.variants.provider import Provider


class Proposer(Protocol):
    """Proposes candidates for one problem, one at a time. Inherit from it: what answers at once needs no more."""

    name: str

    def propose(self, found: Sequence[Scored]) -> Candidate | None:
        """The next candidate, or None if there is none as long as no more is found and nothing pending ends.

        Never waits: what takes longer goes on elsewhere and is pending.

        Args:
            found: everything judged so far, whoever proposed it. A proposer with a language model or a policy draws the
                exemplars of its next prompt from here.

        Raises:
            ProviderError: if whoever writes them cannot answer; the search goes on without this proposer.
        """
        ...

    @property
    def pending(self) -> Sequence[Future[Any]]:
        """What is being written: once one of these is done, propose may have more. Empty once it has raised."""
        return ()

    def close(self) -> None:
        """Write no more; what would disturb the timings that follow is over when this returns."""
        return


class FromProvider(Proposer):
    """Proposes what a provider writes, in its order, whatever is found."""

    def __init__(self, provider: Provider, problem: Problem, *, seed: int) -> None:
        self.name = provider.name
        self._candidates: Iterator[Candidate] = provider.candidates(problem, seed=seed)

    def propose(self, found: Sequence[Scored]) -> Candidate | None:
        return next(self._candidates, None)


class InBackground(Proposer):
    """Proposes what is written all at once in a thread of its own, for what takes long before the first is there.

    Args:
        write: raises ProviderError where there is nothing. It takes the processor, so timings wait for its end.
    """

    def __init__(self, name: str, write: Callable[[], Sequence[Candidate]]) -> None:
        self.name = name
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._written = self._thread.submit(write)
        self._candidates: Iterator[Candidate] | None = None

    def propose(self, found: Sequence[Scored]) -> Candidate | None:
        if not self._written.done():
            return None
        if self._candidates is None:
            self._candidates = iter(self._written.result())
        return next(self._candidates, None)

    @property
    def pending(self) -> Sequence[Future[Any]]:
        return () if self._written.done() else (self._written,)

    def close(self) -> None:
        self._thread.shutdown()
