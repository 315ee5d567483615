"""Proposes what a writer answers to contrastive prompts, with weights that stay as they are.

Source: CUDA-L1 (arXiv:2507.14111), section 3 for the prompt; the rows "evolve" of its ablation for frozen weights, and
its ablation of exemplars for islands.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from typing import Any

from tasks.errors import ProviderError
from tasks.history.exemplars import ExemplarPool, choose_exemplars
from tasks.history.islands import Islands
from tasks.params import ExemplarsParams
from tasks.problems.problem import Problem
from tasks.search.found import Scored, ranked
from tasks.search.proposers import Proposer
from tasks.search.writers import REFUSED, Asked, Writer, Written
from tasks.variants.candidate import Candidate
from tasks.variants.prompts import Exemplar

MOST_FUTILE = 20
"""Answers in a row without a program that is new, after which a writer is not asked any more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IslandsChoice:
    """How a search keeps the answers of one writer on islands; what others propose lives on all of them."""

    count: int
    reset_rounds: int
    """After so many rounds, of as many questions as there are islands, the worse half of them begins anew."""


class Contrastive(Proposer):
    """Each prompt shows candidates of different speed, whoever wrote them, as they were found when it was made.

    No more answers are asked for than the writer works on side by side, so that the next prompt knows what came of
    them. What ends the writer is raised once all its answers were proposed.

    Args:
        choice: how exemplars are drawn.
        islands: shows candidates of one island only; None shows those of all.
        known: questions of a run that was killed. Those without an answer, and those that were refused, are asked
            again, word for word.
        note: keeps a question before it is asked, and again with its answer before that is used.
        candidates: the most that the search judges; nothing is asked for beyond, as far as the verdicts and this
            writer's own answers tell.
    """

    def __init__(
        self,
        problem: Problem,
        writer: Writer,
        *,
        choice: ExemplarsParams,
        seed: int,
        islands: IslandsChoice | None = None,
        known: Iterable[Asked] = (),
        note: Callable[[Asked], None] = lambda asked: None,
        candidates: int | None = None,
    ) -> None:
        self.name = writer.name
        self._problem = problem
        self._writer = writer
        self._choice = choice
        self._islands = islands
        self._seed = seed
        self._note = note
        self._most = candidates
        self._ready: deque[Candidate] = deque()
        self._unanswered: deque[Asked] = deque()
        self._pending: dict[Future[list[Written]], list[Asked]] = {}
        self._seen: set[str] = set()
        self._answers: dict[int, str] = {}
        self._num_asked = 0
        self._num_futile = 0
        self._ended = ""
        for asked in sorted(known, key=lambda asked: asked.number):
            self._num_asked = asked.number + 1
            if asked.written is None or asked.written.form == REFUSED:
                self._unanswered.append(replace(asked, written=None))
            else:
                self._take(asked)

    @property
    def pending(self) -> Sequence[Future[Any]]:
        return tuple(self._pending)

    def propose(self, found: Sequence[Scored]) -> Candidate | None:
        self._collect()
        try:
            self._ask(found)
        except ProviderError as error:
            self._ended = self._ended or str(error)
        known = {each.candidate.candidate_id for each in found}
        while self._ready:
            candidate = self._ready.popleft()
            if candidate.candidate_id not in known:
                return candidate
        if self._ended and not self._pending:
            raise ProviderError(self._ended)
        return None

    def close(self) -> None:
        self._ended = self._ended or "the search is over"
        self._writer.close()
        self._collect()

    def _collect(self) -> None:
        """Take the answers that have come. Each counts, also where another question of the same moment failed."""
        for future in wait(self._pending, timeout=0, return_when=FIRST_COMPLETED).done:
            batch = self._pending.pop(future)
            try:
                written = future.result()
            except ProviderError as error:
                self._ended = self._ended or str(error)
                continue
            for asked, answer in zip(batch, written, strict=True):
                answered = replace(asked, written=answer)
                self._note(answered)
                self._take(answered)

    def _take(self, answered: Asked) -> None:
        candidate = answered.candidate
        if candidate is not None:
            self._answers[answered.number] = candidate.candidate_id
        if candidate is not None and candidate.candidate_id not in self._seen:
            self._seen.add(candidate.candidate_id)
            self._ready.append(candidate)
            self._num_futile = 0
            return
        self._num_futile += 1
        if self._num_futile >= MOST_FUTILE:
            assert answered.written is not None
            what = answered.written.detail or (answered.written.form if candidate is None else "a repetition")
            self._ended = self._ended or f"{self._num_futile} answers in a row without a new program, the last: {what}"

    def _ask(self, found: Sequence[Scored]) -> None:
        """Keep the writer busy, unless enough is on its way."""
        size = self._writer.batch
        while not self._ended:
            on_the_way = len(self._ready) + sum(map(len, self._pending.values()))
            if on_the_way + size > self._writer.at_once * size:
                return
            if self._most is not None and len(found) + on_the_way >= self._most:
                return
            batch = [self._next(found) for _ in range(size)]
            self._pending[self._writer.begin(batch)] = batch

    def _next(self, found: Sequence[Scored]) -> Asked:
        if self._unanswered:
            return self._unanswered.popleft()
        rng = random.Random(f"{self._seed}/{self.name}/{self._num_asked}")  # str seeds are hashed stably
        exemplars = choose_exemplars(
            self._pool(found),
            mode="buckets",
            count=self._choice.count,
            bucket_width=self._choice.bucket_width,
            bucket_temperature=self._choice.bucket_temperature,
            rng=rng,
        )
        prompt, shown = self._writer.prompt(exemplars)
        asked = Asked(
            writer=self.name,
            number=self._num_asked,
            problem_id=self._problem.problem_id,
            prompt=prompt,
            exemplar_ids=tuple(exemplar.candidate_id for exemplar in shown),
        )
        self._note(asked)
        self._num_asked += 1
        return asked

    def _pool(self, found: Sequence[Scored]) -> Sequence[Exemplar]:
        """What the next prompt may show: correct candidates as they were proposed, without what the judge adds."""
        own, others = ExemplarPool(), ExemplarPool()
        for each in ranked(found):
            candidate = each.candidate
            if each.speedup is None:
                continue
            exemplar = Exemplar(candidate_id=candidate.candidate_id, source=candidate.source, speedup=each.speedup)
            if self._writer.can_show(exemplar):
                (own if candidate.origin == self.name else others).add(self._problem.problem_id, exemplar)
        mine = self._on_island(own, self._islands) if self._islands else own.of(self._problem.problem_id)
        return [*mine, *others.of(self._problem.problem_id)]

    def _on_island(self, own: ExemplarPool, choice: IslandsChoice) -> Sequence[Exemplar]:
        """Own answers on the island that the next question is about; a round of questions is a step of the islands."""
        problem_id, size = self._problem.problem_id, choice.count
        islands = Islands(ExemplarPool(), count=size, reset_steps=choice.reset_rounds, seed=self._seed)
        rounds, place = divmod(self._num_asked, size)
        for step in range(rounds):
            answers = [(problem_id, self._answers.get(step * size + each, "")) for each in range(size)]
            islands.note(step + 1, answers, own, group_size=1)
        return islands.of(problem_id, step=rounds + 1, island=islands.asked(rounds + 1, place))
