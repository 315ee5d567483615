"""What providers write, at once or in the background: when it begins, that nothing is lost, and when it ends."""

import threading
from collections.abc import Iterator, Sequence

import pytest

from tasks.errors import ProviderError
from tasks.problems.problem import Problem, Split
from tasks.search.found import Scored
from tasks.search.proposers import FromProvider, InBackground
from tasks.search.search import SCREEN, Budget, Search
from tasks.variants.candidate import Candidate
from tests.program_builders import problem as problem_text
from tests.test_search_contrastive import speedup_in_text

CANDIDATES = [Candidate(problem_id="level1/scaled", source=f"{number} 1", origin="given") for number in range(3)]


class Written:
    """Candidates that are there once the test says so, or once nobody waits for them any more."""

    def __init__(self, error: ProviderError | None = None) -> None:
        self.error = error
        self.is_begun, self.may_end = threading.Event(), threading.Event()

    def write(self) -> Sequence[Candidate]:
        self.is_begun.set()
        assert self.may_end.wait(60)
        if self.error:
            raise self.error
        return CANDIDATES

    def proposer(self) -> InBackground:
        return InBackground("given", self.write, stop=self.may_end.set)


def test_it_begins_with_the_first_question_and_ends_when_it_is_closed() -> None:
    written = Written()
    proposer = written.proposer()
    assert proposer.pending == ()
    assert not written.is_begun.wait(0.05)
    assert proposer.propose([]) is None
    assert written.is_begun.wait(60)
    (future,) = proposer.pending
    proposer.close()
    assert future.done()


class Given:
    """Writes the candidates."""

    name = "given"

    def candidates(self, problem: Problem, *, seed: int) -> Iterator[Candidate]:
        return iter(CANDIDATES)


def test_what_has_a_verdict_already_is_not_proposed_and_nothing_more_is_no_hope() -> None:
    source = problem_text("return x * 2.0", "torch.randn(3)")
    problem = Problem(problem_id="level1/scaled", level=1, family="any", split=Split.TRAIN, source=source)
    proposer = FromProvider(Given(), problem, seed=0)
    judged = [Scored(candidate=CANDIDATES[1], verdict=speedup_in_text(CANDIDATES[1], SCREEN, None), rung=SCREEN)]
    assert proposer.propose([]) == CANDIDATES[0]
    assert proposer.hope(judged) == 1.0
    assert proposer.propose(judged) == CANDIDATES[2]
    assert proposer.hope(judged) == 0.0
    assert proposer.propose(judged) is None


@pytest.mark.parametrize("error", [None, ProviderError("nothing")], ids=["candidates", "a refusal"])
def test_it_is_pending_until_propose_has_what_came_of_it(error: ProviderError | None) -> None:
    written = Written(error)
    proposer = written.proposer()
    assert proposer.propose([]) is None
    written.may_end.set()
    (future,) = proposer.pending
    future.exception(timeout=60)
    assert proposer.pending == (future,)
    if error:
        with pytest.raises(ProviderError, match="nothing"):
            proposer.propose([])
    else:
        assert proposer.propose([]) == CANDIDATES[0]
    assert proposer.pending == ()
    proposer.close()


def test_a_search_misses_nothing_that_is_ready_while_it_looks() -> None:
    class ReadyInBetween(InBackground):
        """Is done just after propose has looked."""

        def propose(self, found: Sequence) -> Candidate | None:
            candidate = super().propose(found)
            if candidate is None:
                written.may_end.set()
                for future in self.pending:
                    future.exception(timeout=60)
            return candidate

    written = Written()
    proposer = ReadyInBetween("given", written.write, stop=written.may_end.set)
    search = Search(speedup_in_text, [proposer], budget=Budget(seconds=60.0), workers=1)
    search.screen()
    assert [each.candidate for each in search.progress.at(SCREEN)] == CANDIDATES
