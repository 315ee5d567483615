"""What each proposer brought to a search, and what it cost: rows of the report and of the verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.search.found import Scored, ranked
from tasks.search.search import SCREEN
from tasks.search.writers import Asked
from tasks.variants.llm.budget import Cost


@dataclass(frozen=True, kw_only=True, slots=True)
class Contribution:
    """One proposer's part."""

    name: str
    num_asked: int
    """Questions; 0 for those that are not asked with prompts."""
    num_unanswered: int
    """Questions without an answer, or whose answer was lost."""
    num_without_program: int
    """Answers that hold no whole program."""
    num_judged: int
    """Distinct texts that were screened."""
    num_correct: int
    best: Scored | None
    """Its fastest, as it was screened."""
    cost: Cost
    """Of everything bought from it with this ledger."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "asked": self.num_asked,
            "unanswered": self.num_unanswered,
            "without_program": self.num_without_program,
            "judged": self.num_judged,
            "correct": self.num_correct,
            "best_candidate_id": self.best.candidate.candidate_id if self.best else None,
            "best_speedup": self.best.speedup if self.best else None,
            "tokens": self.cost.tokens,
            "usd": self.cost.usd,
        }


def contributions(
    names: Sequence[str], scored: Sequence[Scored], asked: Sequence[Asked], spent: Mapping[str, Cost]
) -> list[Contribution]:
    """A row for each proposer, in the order of their names."""
    found = []
    for name in dict.fromkeys(names):
        judged = [each for each in scored if each.rung == SCREEN and each.candidate.origin == name]
        questions = [each for each in asked if each.writer == name]
        answered = [each for each in questions if each.written is not None and each.written.completion]
        fastest = ranked(judged)
        found.append(
            Contribution(
                name=name,
                num_asked=len(questions),
                num_unanswered=len(questions) - len(answered),
                num_without_program=sum(each.candidate is None for each in answered),
                num_judged=len({each.candidate.candidate_id for each in judged}),
                num_correct=len(fastest),
                best=fastest[0] if fastest else None,
                cost=spent.get(name, Cost()),
            )
        )
    return found


def proposed_as(winner: Scored, scored: Sequence[Scored]) -> Scored | None:
    """The screened candidate that a drop-in was made of."""
    made_of = (each for each in scored if each.candidate.candidate_id == winner.candidate.parent_id)
    return next(made_of, None)
