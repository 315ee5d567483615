"""What may still be spent. The most that a question can cost is put aside before it is asked."""

import asyncio
from dataclasses import dataclass

from tasks.errors import ProviderError


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Tokens of questions and answers, and what they cost."""

    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(tokens=self.tokens + other.tokens, usd=self.usd + other.usd)

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(tokens=self.tokens - other.tokens, usd=self.usd - other.usd)


class BudgetSpentError(ProviderError):
    """The cap does not allow the question."""


class Budget:
    """Shared by all generators of one event loop. Without lies about usage, the caps are never exceeded.

    Args:
        spent: before, which counts too.
    """

    def __init__(self, *, max_tokens: int | None, max_usd: float | None, spent: Cost) -> None:
        self._max_tokens = max_tokens
        self._max_usd = max_usd
        self._changed = asyncio.Condition()
        self._num_in_flight = 0
        self._held = Cost()
        self.spent = spent
        """On questions whose outcome is known."""

    async def reserve(self, most: Cost) -> None:
        """Put a question's cost aside; waits while settling others may make room.

        Raises:
            BudgetSpentError: if there is no room, and none to come.
        """
        async with self._changed:
            while not self._fits(most):
                if not self._num_in_flight:
                    raise BudgetSpentError(self._too_much(most))
                await self._changed.wait()
            self._held += most
            self._num_in_flight += 1

    async def settle(self, most: Cost, actual: Cost) -> None:
        """Spend what a question cost of what was put aside for it, and free the rest."""
        async with self._changed:
            self._held -= most
            self.spent += actual
            self._num_in_flight -= 1
            self._changed.notify_all()

    def _fits(self, most: Cost) -> bool:
        after = self.spent + self._held + most
        fits_tokens = self._max_tokens is None or after.tokens <= self._max_tokens
        return fits_tokens and (self._max_usd is None or after.usd <= self._max_usd)

    def _too_much(self, most: Cost) -> str:
        return (
            f"{self.spent.tokens} tokens and {self.spent.usd:.2f} USD are spent, and the next question may take "
            f"{most.tokens} and {most.usd:.4f}: raise max_usd or max_tokens to go on"
        )
