"""Buying answers from one generator: in turn, within the budget, patiently where patience costs nothing, and once."""

import asyncio
import random
from dataclasses import replace
from types import TracebackType
from typing import Self

from tasks.params import GeneratorParams
from tasks.variants.llm.answers import Answer
from tasks.variants.llm.budget import Budget, BudgetSpentError, Cost
from tasks.variants.llm.endpoint import Endpoint
from tasks.variants.llm.ledger import Ledger, Outcome, Purchase
from tasks.variants.llm.question import Question
from tasks.variants.llm.refusals import Again, LostError, RefusedError

MAX_BACKOFF_S = 60.0
JITTER = 0.25
FAILURES_IN_A_ROW = 10
"""After so many questions in a row without an answer, or twice as many as are in flight, an endpoint is given up."""


class Buyer:
    """Buys each question's answer at most once, now or in an earlier run. Never raises for what an endpoint does.

    A question is asked again only after a refusal, which is free. One that may have been charged without an answer is
    lost for good: asking it again could be paying twice.
    """

    def __init__(self, name: str, params: GeneratorParams, *, ledger: Ledger, budget: Budget) -> None:
        self._params = params
        self._endpoint = Endpoint(name, params)
        self._ledger = ledger
        self._budget = budget
        self._turns = asyncio.Semaphore(params.concurrency)
        self._closed_until = 0.0
        self._failures_in_a_row = 0
        self._num_answers = 0
        self.name = name
        self.gave_up = ""
        """Why nothing more is asked here in this run; empty while something is."""

    async def __aenter__(self) -> Self:
        await self._endpoint.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._endpoint.__aexit__(kind, error, trace)

    async def buy(self, question: Question) -> Purchase:
        """The question's purchase: from the ledger, or made now.

        Raises:
            MachineError: if the ledger cannot be written.
        """
        known = self._ledger.find(question.request_id)
        if known is not None and known.is_settled:
            return known
        async with self._turns:
            if self.gave_up:
                return _without_answer(question, Outcome.UNASKED, self.gave_up, is_final=True)
            most = self._price(question.most_prompt_tokens, question.answer_tokens)
            try:
                await self._budget.reserve(most)
            except BudgetSpentError as error:
                return _without_answer(question, Outcome.UNASKED, str(error), is_final=True)
            actual = most
            try:
                purchase = await self._ask_patiently(question, most)
                actual = purchase.cost
            finally:
                await self._budget.settle(most, actual)
        self._note(purchase)
        return purchase

    async def _ask_patiently(self, question: Question, most: Cost) -> Purchase:
        """The outcome of asking, and again after each refusal that passes."""
        attempt, answers_seen = 0, self._num_answers
        while True:
            await self._wait_for_opening()
            if self.gave_up:
                return _without_answer(question, Outcome.UNASKED, self.gave_up, is_final=True)
            self._ledger.ask(question, most=most)
            try:
                answer = await self._endpoint.ask(question)
            except LostError as error:
                self._ledger.lost(question.request_id, str(error))
                return replace(_without_answer(question, Outcome.LOST, str(error)), cost=most)
            except RefusedError as error:
                self._ledger.refused(question.request_id, str(error))
                refusal = error
            else:
                return self._bought(question, answer, most)
            if refusal.again is Again.SLOWER and self._num_answers > answers_seen:
                attempt, answers_seen = 0, self._num_answers
            if refusal.again is Again.NOT_HERE:
                self.gave_up = str(refusal)
            is_final = refusal.again in (Again.NOT_THIS, Again.NOT_HERE)
            if is_final or attempt == self._params.retries:
                return _without_answer(question, Outcome.REFUSED, str(refusal), is_final=is_final)
            self._close_for_a_while(attempt, refusal.retry_after_s)
            attempt += 1

    def _bought(self, question: Question, answer: Answer, most: Cost) -> Purchase:
        if answer.prompt_tokens is None or answer.answer_tokens is None:
            cost = most
        else:
            cost = self._price(answer.prompt_tokens, answer.answer_tokens)
        self._num_answers += 1
        self._ledger.answered(question.request_id, answer, cost=cost)
        return Purchase(request_id=question.request_id, outcome=Outcome.ANSWERED, cost=cost, answer=answer)

    async def _wait_for_opening(self) -> None:
        """Sleep while the endpoint wants to be left alone, and a little longer each, so that not all come at once."""
        loop = asyncio.get_running_loop()
        while (left_s := self._closed_until - loop.time()) > 0:
            await asyncio.sleep(left_s * (1 + JITTER * random.random()))

    def _close_for_a_while(self, attempt: int, retry_after_s: float | None) -> None:
        """One that refuses one question for the moment refuses them all: everybody waits, not this question only."""
        backoff_s = min(self._params.backoff_s * 2**attempt, MAX_BACKOFF_S)
        wait_s = backoff_s if retry_after_s is None else retry_after_s
        self._closed_until = max(self._closed_until, asyncio.get_running_loop().time() + wait_s)

    def _note(self, purchase: Purchase) -> None:
        self._failures_in_a_row = 0 if purchase.outcome is Outcome.ANSWERED else self._failures_in_a_row + 1
        if self._failures_in_a_row >= max(FAILURES_IN_A_ROW, 2 * self._params.concurrency) and not self.gave_up:
            self.gave_up = f"{self._failures_in_a_row} questions in a row without an answer: {purchase.detail}"

    def _price(self, prompt_tokens: int, answer_tokens: int) -> Cost:
        usd = (
            prompt_tokens * self._params.prompt_usd_per_million + answer_tokens * self._params.answer_usd_per_million
        ) / 1e6
        return Cost(tokens=prompt_tokens + answer_tokens, usd=usd)


def _without_answer(question: Question, outcome: Outcome, detail: str, *, is_final: bool = False) -> Purchase:
    return Purchase(request_id=question.request_id, outcome=outcome, detail=detail, is_final=is_final)
