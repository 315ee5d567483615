"""Builders for the tests of language models as providers."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from tasks.params import GeneratorParams
from tasks.variants.llm.budget import Budget
from tasks.variants.llm.buyer import Buyer
from tasks.variants.llm.ledger import Ledger, Purchase
from tasks.variants.llm.question import Question

KEY_VARIABLE = "TEST_GENERATOR_KEY"
KEY = "sk-planted-0123456789"


def generator(url: str, model: str = "right", **changes: Any) -> GeneratorParams:
    values: dict[str, Any] = {
        "base_url": url,
        "model": model,
        "key_variable": None,
        "prompt_usd_per_million": 1.0,
        "answer_usd_per_million": 4.0,
        "answer_tokens": 100,
        "answer_timeout_s": 20.0,
        "retries": 2,
        "backoff_s": 0.01,
    }
    return GeneratorParams(**values | changes)


def question(params: GeneratorParams, number: int = 0, **changes: Any) -> Question:
    values: dict[str, Any] = {
        "generator": "tested",
        "model": params.model,
        "problem_id": "level1/x",
        "trial": number,
        "prompt": "Make it faster.",
        "answer_tokens": params.answer_tokens,
        "temperature": params.temperature,
    }
    return Question(**values | changes)


def bought(
    folder: Path,
    params: GeneratorParams,
    questions: Sequence[Question] | int = 1,
    *,
    max_tokens: int | None = None,
    max_usd: float | None = None,
) -> tuple[list[Purchase], Buyer]:
    """The purchases of questions asked all at once, by a buyer with a ledger in the folder."""
    asked = [question(params, number) for number in range(questions)] if isinstance(questions, int) else questions

    async def buy() -> tuple[list[Purchase], Buyer]:
        budget = Budget(max_tokens=max_tokens, max_usd=max_usd, spent=ledger.spent())
        async with Buyer("tested", params, ledger=ledger, budget=budget) as buyer:
            return list(await asyncio.gather(*map(buyer.buy, asked))), buyer

    with closing(Ledger(folder / "purchases.sqlite")) as ledger:
        return asyncio.run(buy())


def requests_in(log: Path) -> list[dict[str, Any]]:
    """What the server was asked and what it did, request by request."""
    return [json.loads(line) for line in log.read_text().splitlines()]
