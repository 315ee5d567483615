"""Which earlier correct candidates a prompt shows, and the pool they are drawn from."""

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, Self

from tasks.judge.verdict import Verdict
from tasks.variants.candidate import Candidate
from tasks.variants.prompts import Exemplar

Mode = Literal["buckets", "random", "none"]


def choose_exemplars(
    pool: Sequence[Exemplar],
    *,
    mode: Mode,
    count: int,
    bucket_width: float,
    bucket_temperature: float,
    rng: random.Random,
) -> list[Exemplar]:
    """Up to count candidates of different texts, slowest first, so that a prompt reads as a climb.

    "buckets" draws that many different buckets of speed without replacement, bucket i with probability proportional
    to exp((m_i - mu) / tau), where m_i is the mean score of its candidates, mu the mean of the m_i and tau the bucket
    temperature; then one candidate of each bucket, all alike. Fewer buckets than count give fewer exemplars.
    "random" draws candidates, all alike; "none" draws nothing.

    A score is log2 of the speedup, not the speedup: ratios multiply, so a bucket spans the same factor everywhere, and
    a lone 60x does not take all the probability from 2x and 4x.

    Args:
        pool: candidates of one problem.
        bucket_width: in log2 of the speedup; 1.0 spans a factor of two. Buckets start at whole multiples of it.
        bucket_temperature: tau, in the same unit; small prefers the fastest buckets.

    Source: CUDA-L1 (arXiv:2507.14111), section 3; the paper does not disclose width and tau.
    """
    by_text: dict[str, Exemplar] = {}
    for exemplar in pool:
        by_text.setdefault(exemplar.source, exemplar)
    # In the order of ids, so that equal pools and generators draw alike however the pool came about.
    distinct = sorted(by_text.values(), key=lambda exemplar: exemplar.candidate_id)
    if mode == "none":
        chosen = []
    elif mode == "random":
        chosen = rng.sample(distinct, min(count, len(distinct)))
    else:
        buckets = _buckets(distinct, bucket_width)
        chosen = [rng.choice(bucket) for bucket in _draw_buckets(buckets, count, bucket_temperature, rng)]
    return sorted(chosen, key=lambda exemplar: (exemplar.speedup, exemplar.candidate_id))


class ExemplarPool:
    """The correct candidates known so far, by problem, in the order they were added."""

    def __init__(self) -> None:
        self._exemplars: dict[str, dict[str, Exemplar]] = {}

    @classmethod
    def from_verdicts(cls, candidates: Iterable[Candidate], verdicts: Iterable[Verdict]) -> Self:
        """The pool that correct verdicts against the eager baseline make of their candidates.

        Verdicts on texts that are not among the candidates, and verdicts other than correct, add nothing.
        """
        pool = cls()
        sources = {candidate.candidate_id: candidate.source for candidate in candidates}
        for verdict in verdicts:
            if verdict.timing is None or verdict.timing.baseline != "eager" or verdict.candidate_id not in sources:
                continue
            pool.add(
                verdict.problem_id,
                Exemplar(
                    candidate_id=verdict.candidate_id,
                    source=sources[verdict.candidate_id],
                    speedup=verdict.timing.speedup.median,
                ),
            )
        return pool

    def add(self, problem_id: str, exemplar: Exemplar) -> None:
        """Keep an exemplar, unless the candidate is in already.

        The first verdict wins: a pool that kept the best of several timings would fill up with lucky ones.
        """
        self._exemplars.setdefault(problem_id, {}).setdefault(exemplar.candidate_id, exemplar)

    def of(self, problem_id: str) -> Sequence[Exemplar]:
        """The problem's exemplars; empty when there are none."""
        return tuple(self._exemplars.get(problem_id, {}).values())

    def get(self, problem_id: str, candidate_id: str) -> Exemplar | None:
        """The exemplar that a candidate is; None unless it is in."""
        return self._exemplars.get(problem_id, {}).get(candidate_id)

    @property
    def problem_ids(self) -> Sequence[str]:
        """Problems of which there are exemplars."""
        return tuple(self._exemplars)

    def best(self, problem_id: str) -> Exemplar | None:
        """The problem's fastest exemplar, the earliest of equals; None when there are none."""
        return max(self.of(problem_id), key=lambda exemplar: exemplar.speedup, default=None)

    def __len__(self) -> int:
        return sum(map(len, self._exemplars.values()))


def _score(exemplar: Exemplar) -> float:
    return math.log2(exemplar.speedup)


def _buckets(exemplars: Sequence[Exemplar], width: float) -> list[list[Exemplar]]:
    """The exemplars by bucket [k * width, (k + 1) * width) of their score, the slowest bucket first."""
    buckets = defaultdict(list)
    for exemplar in exemplars:
        buckets[math.floor(_score(exemplar) / width)].append(exemplar)
    return [buckets[index] for index in sorted(buckets)]


def _draw_buckets(
    buckets: Sequence[list[Exemplar]], count: int, temperature: float, rng: random.Random
) -> list[list[Exemplar]]:
    """Up to count different buckets, by a softmax over their mean scores that is renewed after each draw."""
    left = [(sum(map(_score, bucket)) / len(bucket), bucket) for bucket in buckets]
    drawn: list[list[Exemplar]] = []
    while left and len(drawn) < count:
        # Any constant cancels in the softmax: the paper subtracts the mean, the largest also keeps exp() in range.
        largest = max(mean for mean, _ in left)
        weights = [math.exp((mean - largest) / temperature) for mean, _ in left]
        (index,) = rng.choices(range(len(left)), weights)
        drawn.append(left.pop(index)[1])
    return drawn
