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

    def hope(self, found: Sequence[Scored]) -> float:
        """The speedup over eager that is hoped for of the next candidate; 0.0 where none will come."""
        return 1.0

    @property
    def pending(self) -> Sequence[Future[Any]]:
        """What is being written: once one of these is done, propose may have more. Empty once it has raised."""
        return ()

    def close(self) -> None:
        """Write no more; what would disturb the timings that follow is over when this returns."""
        return


class FromProvider(Proposer):
    """Proposes what a provider writes, in its order, but for what somebody else's proposal has found a verdict for."""

    def __init__(self, provider: Provider, problem: Problem, *, seed: int) -> None:
        self.name = provider.name
        self._candidates: Iterator[Candidate] = provider.candidates(problem, seed=seed)
        self._ahead: list[Candidate] = []

    def propose(self, found: Sequence[Scored]) -> Candidate | None:
        return self._ahead.pop() if self._has_more(found) else None

    def hope(self, found: Sequence[Scored]) -> float:
        return 1.0 if self._has_more(found) else 0.0

    def _has_more(self, found: Sequence[Scored]) -> bool:
        known = {each.candidate.candidate_id for each in found}
        while not self._ahead or self._ahead[0].candidate_id in known:
            candidate = next(self._candidates, None)
            self._ahead = [] if candidate is None else [candidate]
            if candidate is None:
                return False
        return True


class InBackground(Proposer):
    """Proposes what is written all at once in a thread of its own, for what takes long before the first is there.

    It begins with the first question for a candidate. Screens run beside it; it has ended before anything is looked at
    again.

    Args:
        write: raises ProviderError where there is nothing.
        stop: makes `write` return soon; called from another thread.
    """

    def __init__(self, name: str, write: Callable[[], Sequence[Candidate]], *, stop: Callable[[], None]) -> None:
        self.name = name
        self._write = write
        self._stop = stop
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._written: Future[Sequence[Candidate]] | None = None
        self._candidates: Iterator[Candidate] | None = None

    def propose(self, found: Sequence[Scored]) -> Candidate | None:
        if self._written is None:
            self._written = self._thread.submit(self._write)
        if self._candidates is None:
            if not self._written.done():
                return None
            self._candidates = iter(())  # also where it raises: nothing is pending any more
            self._candidates = iter(self._written.result())
        return next(self._candidates, None)

    @property
    def pending(self) -> Sequence[Future[Any]]:
        # Not gone when it is done: that may be after propose has looked.
        return () if self._written is None or self._candidates is not None else (self._written,)

    def close(self) -> None:
        self._stop()
        self._thread.shutdown()
