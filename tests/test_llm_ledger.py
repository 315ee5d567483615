"""The ledger of purchases and the budget over it."""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from tasks.errors import MachineError, RecordError
from tasks.variants.llm.answers import Answer
from tasks.variants.llm.budget import Budget, BudgetSpentError, Cost
from tasks.variants.llm.ledger import Ledger, Outcome
from tests.llm_builders import generator, question

MOST = Cost(tokens=100, usd=1.0)
ANSWER = Answer(content="x\0\u00e9", finish_reason="stop", prompt_tokens=3, answer_tokens=5, served_model="m")
ASKED = question(generator("http://127.0.0.1:9/v1"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "purchases.sqlite"


def test_an_answer_outlives_the_process(path):
    with closing(Ledger(path)) as ledger:
        ledger.ask(ASKED, most=MOST)
        ledger.answered(ASKED.request_id, ANSWER, cost=Cost(tokens=8, usd=0.1))
    with closing(Ledger(path)) as ledger:
        found = ledger.find(ASKED.request_id)
        assert found is not None
        assert (found.outcome, found.answer, found.cost) == (Outcome.ANSWERED, ANSWER, Cost(tokens=8, usd=0.1))
        assert ledger.spent() == Cost(tokens=8, usd=0.1)


def test_a_question_in_flight_at_a_kill_is_lost_and_counts_in_full(path):
    with closing(Ledger(path)) as ledger:
        ledger.ask(ASKED, most=MOST)
        assert ledger.spent() == MOST
    with closing(Ledger(path)) as ledger:
        found = ledger.find(ASKED.request_id)
        assert found is not None
        assert found.outcome is Outcome.LOST
        assert "in flight" in found.detail
        assert ledger.spent() == MOST


def test_questions_in_flight_at_the_same_kill_end_at_moments_of_their_own(path):
    asked = [question(generator("http://127.0.0.1:9/v1"), number) for number in range(3)]
    with closing(Ledger(path)) as ledger:
        for each in asked:
            ledger.ask(each, most=MOST)
    with closing(Ledger(path)) as ledger:  # or the history would take their costs, alike in all, for one
        assert len({ledger.ended_at(each.request_id) for each in asked}) == len(asked)


@pytest.mark.parametrize("end", ["answered", "lost", "nothing"])
def test_a_question_that_may_have_been_charged_is_never_sent_again(path, end):
    with closing(Ledger(path)) as ledger:
        ledger.ask(ASKED, most=MOST)
        if end == "answered":
            ledger.answered(ASKED.request_id, ANSWER, cost=MOST)
        elif end == "lost":
            ledger.lost(ASKED.request_id, "cut")
        with pytest.raises(RecordError, match="must not be again"):
            ledger.ask(ASKED, most=MOST)


def test_a_refusal_costs_nothing_and_may_be_asked_again(path):
    with closing(Ledger(path)) as ledger:
        ledger.ask(ASKED, most=MOST)
        ledger.refused(ASKED.request_id, "busy")
        assert ledger.spent() == Cost()
        ledger.ask(ASKED, most=MOST)
        assert ledger.spent() == MOST


def test_what_is_asked_and_not_where_decides_what_is_one_purchase():
    here, there = generator("http://127.0.0.1:9/v1"), generator("http://127.0.0.1:8/v1", answer_usd_per_million=9.0)
    assert question(here) == question(there)
    others = [{"trial": 1}, {"prompt": "x"}, {"model": "x"}, {"generator": "x"}, {"temperature": None}]
    ids = {replace(question(here), **change).request_id for change in [*others, {}, {"answer_tokens": 7}]}
    assert len(ids) == 7


def test_a_second_process_is_told_to_wait(path, monkeypatch):
    monkeypatch.setattr("tasks.variants.llm.ledger.PATIENCE_S", 0.1)
    with closing(Ledger(path)), pytest.raises(MachineError, match="another process is buying"):
        Ledger(path)


def test_a_ledger_of_a_newer_program_is_refused(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(MachineError, match="version 99"):
        Ledger(path)


def test_a_damaged_ledger_is_refused_by_name(path):
    path.write_bytes(b"x" * 8192)
    with pytest.raises(MachineError, match=r"purchases\.sqlite: file is not a database"):
        Ledger(path)


def test_what_was_spent_before_counts():
    budget = Budget(max_tokens=250, max_usd=None, spent=Cost(tokens=100))

    async def spend() -> None:
        await budget.reserve(MOST)
        await budget.settle(MOST, Cost(tokens=100))
        await budget.reserve(MOST)

    with pytest.raises(BudgetSpentError, match=r"200 tokens.*max_tokens"):
        asyncio.run(spend())


def test_room_is_waited_for_while_a_question_in_flight_may_leave_some():
    budget = Budget(max_tokens=None, max_usd=1.5, spent=Cost())
    order = []

    async def first() -> None:
        await budget.reserve(MOST)
        await asyncio.sleep(0)
        order.append("first")
        await budget.settle(MOST, Cost(tokens=1, usd=0.25))

    async def second() -> None:
        await budget.reserve(MOST)
        order.append("second")

    async def both() -> None:
        await asyncio.gather(first(), second())

    asyncio.run(both())
    assert order == ["first", "second"]
    assert budget.spent == Cost(tokens=1, usd=0.25)
