"""Islands: populations of a problem's candidates that evolve apart, the paper's alternative to buckets of speed.

Nothing is stored here. Who lives where is a function of what was found, in which step and for which prompt, so noting a
journal's steps again gives equal islands.

Source: Romera-Paredes et al., "Mathematical discoveries from program search with large language models", Nature 2023;
CUDA-L1 (arXiv:2507.14111) compares both ways, 3.21x with islands and 3.12x with buckets.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.history.exemplars import ExemplarPool
from tasks.variants.prompts import Exemplar


@dataclass(frozen=True, kw_only=True, slots=True)
class _Find:
    step: int
    island: int
    exemplar: Exemplar


class Islands:
    """A prompt shows candidates of one island, and what is found with it lives there, and there only.

    A problem's candidates known before training live on all its islands, as a search's first program does. Every so
    many steps the half of the islands whose best are the slowest are emptied, and each begins anew with the best
    candidate of one of the others, drawn at random.
    """

    def __init__(self, before: ExemplarPool, *, count: int, reset_steps: int, seed: int) -> None:
        """Begin with the candidates known before training; the pool may grow afterwards."""
        self._before = {problem_id: before.of(problem_id) for problem_id in before.problem_ids}
        self._count = count
        self._reset_steps = reset_steps
        self._seed = seed
        self._finds: dict[str, list[_Find]] = defaultdict(list)

    def asked(self, step: int, group: int) -> int:
        """The island whose candidates a prompt shows.

        Args:
            step: counted from 1.
            group: place of the prompt in its step.
        """
        return random.Random(f"{self._seed} island {step} {group}").randrange(self._count)

    def note(self, step: int, rollouts: Sequence[tuple[str, str]], pool: ExemplarPool, *, group_size: int) -> None:
        """Settle a step's correct candidates on the islands that they were found with.

        Args:
            rollouts: problem id and candidate id of each, group by group.
            pool: what it holds is correct and not in doubt; it must hold these rollouts' finds by now.
        """
        for number, (problem_id, candidate_id) in enumerate(rollouts):
            exemplar = pool.get(problem_id, candidate_id)
            if exemplar is not None:
                island = self.asked(step, number // group_size)
                self._finds[problem_id].append(_Find(step=step, island=island, exemplar=exemplar))

    def of(self, problem_id: str, *, step: int, island: int) -> list[Exemplar]:
        """Who lives on an island when a step begins, in the order of their arrival."""
        islands = [{each.candidate_id: each for each in self._before.get(problem_id, ())} for _ in range(self._count)]
        resets = 0
        for find in self._finds[problem_id]:
            if find.step >= step:
                break
            while (resets + 1) * self._reset_steps < find.step:
                resets += 1
                self._reset(islands, problem_id, resets)
            islands[find.island].setdefault(find.exemplar.candidate_id, find.exemplar)
        while (resets + 1) * self._reset_steps < step:
            resets += 1
            self._reset(islands, problem_id, resets)
        return list(islands[island].values())

    def _reset(self, islands: list[dict[str, Exemplar]], problem_id: str, number: int) -> None:
        speeds = [max((each.speedup for each in island.values()), default=0.0) for island in islands]
        order = sorted(range(len(islands)), key=lambda index: -speeds[index])
        split = len(order) - len(order) // 2
        founders = [max(islands[index].values(), key=_rank) for index in order[:split] if islands[index]]
        rng = random.Random(f"{self._seed} reset {problem_id} {number}")
        for index in order[split:] if founders else ():
            founder = rng.choice(founders)
            islands[index] = {founder.candidate_id: founder}


def _rank(exemplar: Exemplar) -> tuple[float, str]:
    return exemplar.speedup, exemplar.candidate_id
