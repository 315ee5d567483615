"""Records of what was asked of language models and what came of it: rows of a stage's output, samples, metrics."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tasks.history.records import GENERATION, Cost, Sample
from tasks.judge.verdict import Status, Verdict
from tasks.variants.candidate import Candidate
from tasks.variants.llm import budget
from tasks.variants.llm.ledger import Ledger, Purchase
from tasks.variants.llm.programs import Form
from tasks.variants.llm.question import Question


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One question and what came of it; candidate, form and verdict stand where there was an answer."""

    question: Question
    purchase: Purchase
    form: Form | None = None
    candidate: Candidate | None = None
    verdict: Verdict | None = None

    @property
    def success(self) -> str | None:
        """The candidate's id if it ran and was right, however badly this machine could time it."""
        if self.verdict is None or self.verdict.status not in (Status.CORRECT, Status.UNSTABLE):
            return None
        return self.verdict.candidate_id

    @property
    def is_final(self) -> bool:
        """Whether more trials of the same generator at the same problem would be in vain."""
        has_bad_problem = self.verdict is not None and self.verdict.status is Status.BAD_PROBLEM
        return self.purchase.is_final or has_bad_problem

    def to_json(self) -> dict[str, Any]:
        """A row of answers.jsonl: the answer word for word, how it was read, and what it cost."""
        answer = self.purchase.answer
        return {
            "request_id": self.purchase.request_id,
            "generator": self.question.generator,
            "model": self.question.model,
            "problem_id": self.question.problem_id,
            "trial": self.question.trial,
            "prompt": self.question.prompt,
            "outcome": self.purchase.outcome.value,
            "detail": self.purchase.detail,
            "tokens": self.purchase.cost.tokens,
            "usd": self.purchase.cost.usd,
            "form": self.form.value if self.form else None,
            "candidate_id": self.candidate.candidate_id if self.candidate else None,
            "status": self.verdict.status.value if self.verdict else None,
            "prompt_tokens": answer.prompt_tokens if answer else None,
            "answer_tokens": answer.answer_tokens if answer else None,
            "served_model": answer.served_model if answer else None,
            "finish_reason": answer.finish_reason if answer else None,
            "content": answer.content if answer else None,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Bought:
    """What a run bought or had bought before, in an order that does not depend on who answered first."""

    trials: Sequence[Trial]
    spent: budget.Cost
    """In all runs of this project together."""

    def metrics(self) -> dict[str, float]:
        """By generator: what came of its questions, how its answers were read and judged, and what they took."""
        counts: Counter[str] = Counter()
        usd: dict[str, float] = defaultdict(float)
        successes = set()
        for trial in self.trials:
            name = trial.question.generator
            counts[f"{name}/{trial.purchase.outcome}"] += 1
            counts[f"{name}/tokens"] += trial.purchase.cost.tokens
            usd[f"{name}/usd"] += trial.purchase.cost.usd
            if trial.form is not None:
                counts[f"{name}/form_{trial.form}"] += 1
            if trial.success is not None:
                successes.add((name, trial.success))
        counts.update(f"{name}/successes" for name, _ in successes)
        total = {"project_tokens": self.spent.tokens, "project_usd": round(self.spent.usd, 6)}
        return dict(counts) | {name: round(value, 6) for name, value in usd.items()} | total


def as_samples(by_pair: Sequence[Sequence[Trial]]) -> list[Sample]:
    """The history's rows of answers: the trial is the step, and generator and problem together the number."""
    return [
        Sample(
            problem_id=trial.question.problem_id,
            candidate_id=trial.candidate.candidate_id,
            prompt=trial.question.prompt,
            completion=trial.purchase.answer.content,
            policy=trial.question.generator,
            # Not known where the endpoint chose it.
            temperature=math.nan if trial.question.temperature is None else trial.question.temperature,
            step=trial.question.trial,
            number=number,
        )
        for number, pair in enumerate(by_pair)
        for trial in pair
        if trial.candidate is not None and trial.purchase.answer is not None
    ]


def cost_of(trial: Trial, ledger: Ledger, *, since: float) -> Cost | None:
    """The history's row of what an answer cost, also of one that never came but may have been charged.

    It is what the endpoint reported, or where it did not the most that it can have been, which is what the caps count.

    Args:
        since: Unix time. What came to its end before was paid for by an earlier run, and there is no row for it.
    """
    spent_at = ledger.ended_at(trial.purchase.request_id)
    if not trial.purchase.is_settled or spent_at is None or spent_at < since:
        return None
    question, answer = trial.question, trial.purchase.answer
    prompt_tokens, answer_tokens = question.most_prompt_tokens, question.answer_tokens
    if answer and answer.prompt_tokens is not None and answer.answer_tokens is not None:
        prompt_tokens, answer_tokens = answer.prompt_tokens, answer.answer_tokens
    return Cost(
        purpose=GENERATION,
        candidate_id=trial.candidate.candidate_id if trial.candidate else None,
        prompt_tokens=prompt_tokens,
        answer_tokens=answer_tokens,
        price_usd=trial.purchase.cost.usd,
        spent_at=spent_at,
    )
