"""Who answers the prompts of a search: language models behind endpoints, and policies on this machine.

Nothing light may import this file: it brings the client along.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from anyio.from_thread import start_blocking_portal

from tasks.errors import PolicyError, ProviderError
from tasks.params import GeneratorParams, Params
from tasks.problems.problem import Problem
from tasks.search.writers import REFUSED, Asked, Writer, Written
from tasks.variants.llm.budget import Budget, Cost
from tasks.variants.llm.buyer import Buyer
from tasks.variants.llm.ledger import Ledger, Outcome
from tasks.variants.llm.programs import Form, read_program
from tasks.variants.llm.question import Question
from tasks.variants.prompts import Exemplar, parse_completion

if TYPE_CHECKING:
    from tasks.training.policy import Policy

PURCHASES = "purchases.sqlite"
POLICY_BATCH = 4
"""Completions that a policy writes side by side: few, since a search knows more after each."""


class Shop:
    """Buyers in a thread of their own, so that a search goes on while answers are written.

    Args:
        path: of the ledger. What stands in it counts against the cap.
        generators: by name.
        max_usd: None for no cap.

    Raises:
        ParamsError: on entering, if a key is missing.
        MachineError: on entering, if the ledger cannot be opened.
    """

    def __init__(self, path: Path, generators: Mapping[str, GeneratorParams], *, max_usd: float | None) -> None:
        self._path = path
        self._generators = generators
        self._max_usd = max_usd
        self._stack = ExitStack()
        self._in_flight: set[Future[list[Written]]] = set()
        self._buyers: dict[str, Buyer] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal(name="buying"))
            self._ledger = self._portal.call(Ledger, self._path)  # which knows one thread only
            stack.callback(self._portal.call, self._ledger.close)
            budget = Budget(max_tokens=None, max_usd=self._max_usd, spent=self._portal.call(self._ledger.spent))
            for name, params in self._generators.items():
                buyer = Buyer(name, params, ledger=self._ledger, budget=budget)
                self._buyers[name] = stack.enter_context(self._portal.wrap_async_context_manager(buyer))
            stack.callback(self._leave)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def buy(self, question: Question) -> "Future[list[Written]]":
        """The answer to a question, from the ledger or bought, as soon as it is there.

        The future raises ProviderError where its endpoint was given up or no money is left.
        """
        future = self._portal.start_task_soon(self._bought, question)
        self._in_flight.add(future)
        future.add_done_callback(self._in_flight.discard)
        return future

    def spent(self) -> dict[str, Cost]:
        """What each generator has cost in all runs with this ledger; what is in flight counts as the most possible."""
        return {name: self._portal.call(self._ledger.spent, name) for name in self._generators}

    async def _bought(self, question: Question) -> list[Written]:
        buyer = self._buyers[question.generator]
        purchase = await buyer.buy(question)
        answer = purchase.answer
        if answer is not None:
            reading = read_program(answer.content, prompt=question.prompt, finish_reason=answer.finish_reason)
            source = reading.source if reading.form is Form.PROGRAM else None
            return [Written(completion=answer.content, source=source, form=reading.form.value)]
        is_lost = purchase.outcome is Outcome.LOST
        if not is_lost and (buyer.gave_up or purchase.outcome is Outcome.UNASKED):
            raise ProviderError(buyer.gave_up or purchase.detail)
        form = Outcome.LOST.value if is_lost else REFUSED
        return [Written(completion="", source=None, form=form, detail=purchase.detail)]

    def _leave(self) -> None:
        """Wait for no answer any more: one may take many minutes."""
        for future in list(self._in_flight):
            future.cancel()


class LanguageModel(Writer):
    """One generator of params.yaml, asked about one problem."""

    batch = 1

    def __init__(self, name: str, params: GeneratorParams, problem: Problem, *, shop: Shop, device: str) -> None:
        self.name = name
        self.at_once = params.concurrency
        self._params = params
        self._problem = problem
        self._shop = shop
        self._device = device

    def can_show(self, exemplar: Exemplar) -> bool:
        return True

    def prompt(self, exemplars: Sequence[Exemplar]) -> tuple[str, Sequence[Exemplar]]:
        return self._question(0, exemplars).prompt, exemplars

    def begin(self, batch: Sequence[Asked]) -> Future[list[Written]]:
        (asked,) = batch
        return self._shop.buy(replace(self._question(asked.number), prompt=asked.prompt))

    def close(self) -> None:
        return  # answers take nothing of this machine, and the shop ends those that are on their way

    def _question(self, trial: int, exemplars: Sequence[Exemplar] = ()) -> Question:
        return Question.about(
            self._problem,
            generator=self.name,
            params=self._params,
            device=self._device,
            trial=trial,
            exemplars=exemplars,
        )


class LocalPolicy(Writer):
    """A policy on this machine, asked about one problem. It writes in a thread of its own, one batch at a time."""

    at_once = 1
    batch = POLICY_BATCH

    def __init__(self, name: str, policy: "Policy", problem: Problem, *, temperature: float, seed: int) -> None:
        self.name = name
        self._policy = policy
        self._problem = problem
        self._temperature = temperature
        self._seed = seed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    def can_show(self, exemplar: Exemplar) -> bool:
        from tasks.training.policy import can_write

        return can_write(self._policy, exemplar.source)

    def prompt(self, exemplars: Sequence[Exemplar]) -> tuple[str, Sequence[Exemplar]]:
        from tasks.training.policy import fitting_prompt

        try:
            return fitting_prompt(self._policy, self._problem.source, exemplars)
        except PolicyError as error:
            raise ProviderError(str(error)) from error

    def begin(self, batch: Sequence[Asked]) -> Future[list[Written]]:
        return self._thread.submit(self._written, batch)

    def close(self) -> None:
        self._thread.shutdown()

    def _written(self, batch: Sequence[Asked]) -> list[Written]:
        from tasks.training.sampling import sample

        completions = sample(
            self._policy,
            [asked.prompt for asked in batch],
            num_samples=1,
            temperature=self._temperature,
            seed=self._seed * 1_000_003 + batch[0].number,
            batch_size=len(batch),
        )
        return [
            Written(
                completion=completion,
                source=parse_completion(completion, style=self._policy.style),
                form=Form.PROGRAM.value,
            )
            for (completion,) in completions
        ]


def load_writer(name: str, source: str, params: Params, problem: Problem, *, seed: int) -> LocalPolicy:
    """A policy by path or by name, loaded as the stages do, with the sections policy and evaluate of params.yaml.

    Raises:
        PolicyError: if it cannot be loaded.
    """
    from tasks.training.policy import load_policy

    try:
        policy = load_policy(source, params.policy)
    except PolicyError as error:
        raise PolicyError(f"--provider {name}: {error}") from error
    return LocalPolicy(name, policy, problem, temperature=params.evaluate.temperature, seed=seed)
