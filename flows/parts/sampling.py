"""Sampling from a policy for a stage: prompts with exemplars, in batches, journalled so that a kill costs one batch."""

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from flows.engine import Stage, progress
from flows.parts.accounting import Expenses
from flows.parts.journal import Journal
from tasks.history.exemplars import choose_exemplars
from tasks.history.records import GENERATION, Cost, Sample
from tasks.params import ExemplarsParams
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate
from tasks.variants.prompts import Exemplar, parse_completion

if TYPE_CHECKING:
    from tasks.training.policy import Policy

BATCH = 96


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One prompt that wants one completion."""

    problem_id: str
    prompt: str
    exemplar_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Draw:
    """One completion of a policy, and the candidate it was read as."""

    request: Request
    completion: str
    candidate: Candidate
    temperature: float
    """0 for greedy."""


def build_requests(
    policy: "Policy",
    problems: Iterable[Problem],
    pool: Mapping[str, Sequence[Exemplar]],
    choice: ExemplarsParams,
    *,
    each: int,
    exemplar_share: float,
    seed: int,
) -> list[Request]:
    """Prompts for every problem, each with exemplars of its own draw.

    Args:
        pool: problem id -> exemplars that may be shown; a problem that is missing gets prompts without any.
        choice: how exemplars are chosen.
        each: requests per problem.
        exemplar_share: probability that a prompt shows exemplars at all.

    Raises:
        PolicyError: if a bare reference leaves no room for a completion.
    """
    from tasks.training.policy import fitting_prompt, require_room

    problems = list(problems)
    require_room(policy, problems)
    requests = []
    for problem in problems:
        rng = random.Random(f"{seed}/{problem.problem_id}")  # str seeds are hashed stably, unlike hash(str)
        for _ in range(each):
            exemplars: Sequence[Exemplar] = []
            if rng.random() < exemplar_share:
                exemplars = choose_exemplars(
                    pool.get(problem.problem_id, ()),
                    mode="buckets",
                    count=choice.count,
                    bucket_width=choice.bucket_width,
                    bucket_temperature=choice.bucket_temperature,
                    rng=rng,
                )
            prompt, shown = fitting_prompt(policy, problem.source, exemplars)
            requests.append(
                Request(
                    problem_id=problem.problem_id,
                    prompt=prompt,
                    exemplar_ids=tuple(exemplar.candidate_id for exemplar in shown),
                )
            )
    return requests


def draw(
    stage: Stage,
    policy: "Policy",
    requests: Sequence[Request],
    *,
    name: str,
    origin: str,
    temperature: float | None,
    seed: int,
    expenses: Expenses,
) -> list[Draw]:
    """One completion for each request, in order; what each batch took is noted among the expenses.

    Args:
        name: names the journal; a name stands for one policy and one list of requests within a run of a stage.
        origin: who the candidates are said to be from.
        temperature: None for greedy.
        seed: decides what is drawn. Policies are compared by one; drawn from again and again, one has to have several.
    """
    # Which request a completion answers is told by its place alone.
    remedy = 'remove all from the last line with "cost" before it on: what they held is sampled again'
    journal = Journal(stage.folder / f"draws-{name}.jsonl", remedy=remedy)
    completions = [row["completion"] for row in journal.rows if "completion" in row]
    expenses.note(*(Cost(**row["cost"]) for row in journal.rows if "cost" in row))
    with progress(f"sampling {name}", total=len(requests), unit="completion") as bar:
        bar.update(len(completions))
        while len(completions) < len(requests):
            start = len(completions)
            prompts = [request.prompt for request in requests[start : start + BATCH]]
            written, cost = _batch(policy, prompts, temperature=temperature, seed=seed * 1_000_003 + start)
            # The cost first: what a kill cuts off is the end.
            journal.append([{"cost": asdict(cost)}, *({"completion": completion} for completion in written)])
            expenses.note(cost)
            completions += written
            bar.update(len(prompts))
    journal.close()
    return [
        Draw(
            request=request,
            completion=completion,
            candidate=Candidate(
                problem_id=request.problem_id,
                source=parse_completion(completion, style=policy.style),
                origin=origin,
            ),
            temperature=temperature or 0.0,
        )
        for request, completion in zip(requests, completions, strict=True)
    ]


def _batch(policy: "Policy", prompts: Sequence[str], *, temperature: float | None, seed: int) -> tuple[list[str], Cost]:
    """One completion of each prompt, and what they took together."""
    from tasks.training.sampling import sample

    num_tokens = [0, 0]

    def on_tokens(*counted: int) -> None:
        num_tokens[:] = counted

    begun = time.perf_counter()
    answers = sample(
        policy,
        prompts,
        num_samples=1,
        temperature=temperature,
        seed=seed,
        batch_size=BATCH,
        on_tokens=on_tokens,
    )
    seconds = time.perf_counter() - begun
    prompt_tokens, answer_tokens = num_tokens
    cost = Cost(
        purpose=GENERATION,
        seconds=seconds,
        prompt_tokens=prompt_tokens,
        answer_tokens=answer_tokens,
        spent_at=time.time(),
    )
    return [answer for (answer,) in answers], cost


def as_samples(draws: Sequence[Draw], *, policy: str, step: int) -> list[Sample]:
    """The history's rows for draws."""
    return [
        Sample(
            problem_id=drawn.request.problem_id,
            prompt=drawn.request.prompt,
            exemplar_ids=drawn.request.exemplar_ids,
            completion=drawn.completion,
            candidate_id=drawn.candidate.candidate_id,
            policy=policy,
            step=step,
            number=number,
            temperature=drawn.temperature,
        )
        for number, drawn in enumerate(draws)
    ]
