"""Buying candidates from language models for a stage, and judging them while others are still being written.

Nothing light may import this file: it brings the client and the judge along.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from typing import NoReturn

from tqdm import tqdm

from flows.engine import DATA, Stage, progress, say
from flows.parts.accounting import Expenses
from flows.parts.judging import Court, court
from flows.parts.trials import Bought, Trial, as_samples, cost_of
from tasks.errors import ProviderError
from tasks.judge.verdict import Verdict
from tasks.params import GenerateVariantsParams
from tasks.problems.problem import Problem, Split
from tasks.variants.candidate import Candidate
from tasks.variants.llm.budget import Budget
from tasks.variants.llm.buyer import Buyer
from tasks.variants.llm.ledger import Ledger, Outcome
from tasks.variants.llm.programs import read_program
from tasks.variants.llm.question import Question

PURCHASES = DATA / "purchases.sqlite"
"""Like the history a memory across runs, never a stage's output: what was paid for outlives a changed line of code."""


def buy_variants(stage: Stage, problems: Mapping[str, Problem], expenses: Expenses) -> Bought:
    """Ask every generator in use about every train problem until enough answers are correct or trials are used up.

    Answers stand in the ledger before they are used, verdicts in the stage's journal, and both in the history. What an
    answer cost is an expense of the run that bought it, not of a later one that finds it in the ledger.

    Raises:
        ProviderError: if an endpoint was given up, after all others have finished; running again goes on from there.
        ParamsError: if a key is missing, before anything is spent.
    """
    params = stage.params.generate_variants
    train = [problem for problem in problems.values() if problem.split is Split.TRAIN]
    with closing(Ledger(PURCHASES)) as ledger, court(stage, problems) as judges:

        def on_trial(trial: Trial) -> None:
            if cost := cost_of(trial, ledger, since=stage.started_at):
                expenses.note(cost)

        market = Market(
            params,
            judges,
            ledger,
            device=stage.params.judge.device,
            workers=judges.workers,
            on_trial=on_trial,
        )
        try:
            by_pair = asyncio.run(market.buy_all(train))
        except BaseExceptionGroup as group:
            _raise_first(group)
        judges.record_samples(as_samples(by_pair))
        trials = [trial for pair in by_pair for trial in pair]
        spent = ledger.spent()
    left = [trial for trial in trials if trial.purchase.outcome in (Outcome.REFUSED, Outcome.UNASKED)]
    given_up = sorted({trial.question.generator for trial in left} & market.gave_up.keys())
    if given_up:
        raise ProviderError(
            "not every question was answered, and the same command goes on with them (what was bought is kept):\n"
            + "\n".join(f"  {name}: {market.gave_up[name]}" for name in given_up)
        )
    if left:
        say(f"warning: {len(left)} question(s) have no answer, the last one because: {left[-1].purchase.detail}")
    return Bought(trials=trials, spent=spent)


class Market:
    """All generators and the court, in one event loop."""

    def __init__(
        self,
        params: GenerateVariantsParams,
        judges: Court,
        ledger: Ledger,
        *,
        device: str,
        workers: int,
        on_trial: Callable[[Trial], None],
    ) -> None:
        self._params = params
        self._judges = judges
        self._ledger = ledger
        self._device = device
        self._workers = workers
        self._on_trial = on_trial
        self._num_answers = 0
        self.gave_up: dict[str, str] = {}
        """Endpoint -> why."""

    async def buy_all(self, problems: Sequence[Problem]) -> list[list[Trial]]:
        """The trials of each generator and problem, generator by generator."""
        params = self._params
        self._budget = Budget(max_tokens=params.max_tokens, max_usd=params.max_usd, spent=self._ledger.spent())
        self._waiting: asyncio.Queue[tuple[Candidate, asyncio.Future[Verdict]]] = asyncio.Queue()
        buyers = [
            Buyer(name, generator, ledger=self._ledger, budget=self._budget)
            for name, generator in params.generators_in_use.items()
        ]
        with progress("buying", total=len(buyers) * len(problems), unit="pair") as bar:
            async with AsyncExitStack() as endpoints, asyncio.TaskGroup() as group:
                for buyer in buyers:
                    await endpoints.enter_async_context(buyer)
                sitting = group.create_task(self._judge_what_arrives())
                pairs = [
                    group.create_task(self._trials(buyer, problem, bar)) for buyer in buyers for problem in problems
                ]
                by_pair = await asyncio.gather(*pairs)
                sitting.cancel()
        self.gave_up = {buyer.name: buyer.gave_up for buyer in buyers if buyer.gave_up}
        return by_pair

    async def _trials(self, buyer: Buyer, problem: Problem, bar: "tqdm[NoReturn]") -> list[Trial]:
        """One generator's trials at one problem.

        No more are under way than successes are missing: so none is bought that could have been spared, and which are
        bought depends on the answers alone, not on their order.
        """
        trials: list[Trial] = []
        successes: set[str | None] = set()
        running: set[asyncio.Task[Trial]] = set()
        async with asyncio.TaskGroup() as group:
            for number in range(self._params.trials):
                running.add(group.create_task(self._trial(buyer, problem, number)))
                while len(running) + len(successes) >= self._params.successes and running:
                    finished, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    trials += [task.result() for task in finished]
                    successes = {trial.success for trial in trials} - {None}
                    self._show(bar)
                if len(successes) >= self._params.successes or any(trial.is_final for trial in trials):
                    break
        trials += [task.result() for task in running]
        bar.update()
        return sorted(trials, key=lambda trial: trial.question.trial)

    async def _trial(self, buyer: Buyer, problem: Problem, number: int) -> Trial:
        trial = await self._answered(buyer, problem, number)
        self._on_trial(trial)  # at once, so that a run that fails has told what it spent
        return trial

    async def _answered(self, buyer: Buyer, problem: Problem, number: int) -> Trial:
        question = Question.about(
            problem,
            generator=buyer.name,
            params=self._params.generators[buyer.name],
            device=self._device,
            trial=number,
        )
        purchase = await buyer.buy(question)
        answer = purchase.answer
        if answer is None:
            return Trial(question=question, purchase=purchase)
        self._num_answers += 1
        reading = read_program(answer.content, prompt=question.prompt, finish_reason=answer.finish_reason)
        candidate = Candidate(problem_id=problem.problem_id, source=reading.source, origin=buyer.name)
        verdict = asyncio.get_running_loop().create_future()
        await self._waiting.put((candidate, verdict))
        return Trial(
            question=question, purchase=purchase, form=reading.form, candidate=candidate, verdict=await verdict
        )

    async def _judge_what_arrives(self) -> None:
        """Hand the court as many candidates as it judges side by side, or fewer where no more wait; forever."""
        while True:
            batch = [await self._waiting.get()]
            while len(batch) < self._workers and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            verdicts = await asyncio.to_thread(self._judges.judge, [candidate for candidate, _ in batch])
            for (_, waiting), verdict in zip(batch, verdicts, strict=True):
                waiting.set_result(verdict)

    def _show(self, bar: "tqdm[NoReturn]") -> None:
        bar.set_postfix_str(f"{self._num_answers} answers, {self._budget.spent.usd:.2f} USD", refresh=False)


def _raise_first(group: BaseExceptionGroup[BaseException]) -> NoReturn:
    """What went wrong first, without the wrapping of task groups."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    raise error from None
