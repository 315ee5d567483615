"""Proposes rewrites of a reference: each alone at first, then compositions of those that made it faster."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tasks.problems.problem import Problem
from tasks.search.found import Scored
from tasks.search.proposers import Proposer
from tasks.variants.builtin import COMPILED, FAULTS
from tasks.variants.candidate import Candidate
from tasks.variants.layout import laid_out
from tasks.variants.rewrites import REWRITES
from tasks.variants.rewrites.inlining import inlined
from tasks.variants.rewriting import ORIGIN, Rewrite, as_candidate_program, candidate_of

HOPE_OF_GROUP = {"triton": 1.3, "kernel": 1.3, "capture": 1.25, "fusion": 1.2, "graph": 1.15, "algebra": 1.1}
"""The factor that is hoped for of a rewrite that was not judged alone."""
HOPE = 1.05
WORTH_EXTENDING = 0.97
"""Speedup below which a text is not rewritten further: one that is only as fast as the reference may open a way."""
DRAWS = 2
"""Times that each rewrite is applied to a text: where it fits several places, it chooses one at random."""
SAME_AS_BASELINE = ("compile_forward", "compile_forward_whole", "compile_forward_replayed")
"""Not proposed: without a composition they are baselines; with one compile_forward_static and compile_and_replay are
as good."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A program that was reached by rewriting."""

    candidate: Candidate
    program: cst.Module
    hope: float
    """The speedup that is expected of it."""


def starting_programs(problem: Problem) -> list[cst.Module]:
    """Equal programs to rewrite: with what forward calls put into it, where that changes anything, and as it is."""
    plain = as_candidate_program(problem.source)
    return [laid_out(inlined(plain)), plain] if inlined(plain).code != plain.code else [plain]


class Compositions(Proposer):
    """Best first: a composition is hoped to be as fast as its parent times what its last rewrite brought alone.

    Runs no code: everything is done on the syntax tree.

    Args:
        seed: decides which of several places a rewrite chooses.
        start: what is rewritten, equal to the reference; the reference itself where it is None.
        depth: longest composition.
    """

    name = ORIGIN

    def __init__(
        self,
        problem: Problem,
        *,
        seed: int,
        start: cst.Module | None = None,
        depth: int = 5,
        rewrites: Sequence[Rewrite] = REWRITES,
    ) -> None:
        self._problem = problem
        self._seed = seed
        self._depth = depth
        self._rewrites = [each for each in rewrites if each.group != FAULTS and each.name not in SAME_AS_BASELINE]
        self._compiling = {each.name for each in rewrites if each.group == COMPILED}
        start = start or as_candidate_program(problem.source)
        origin = _Step(candidate_of(problem, start, ()), start, 1.0)
        self._steps = {origin.candidate.candidate_id: origin}
        self._waiting: list[_Step] = []
        self._closed: set[str] = set()
        self._alone: dict[str, float] = {}
        self._extend(origin, speedup=1.0)

    def propose(self, found: Sequence[Scored]) -> Candidate | None:
        speedups = {each.candidate.candidate_id: each.speedup or 0.0 for each in found}
        self._learn(speedups)
        while True:
            chosen = max(self._waiting, key=lambda step: step.hope, default=None)
            parent = None if self._has_waiting_singles else self._fastest_open(speedups)
            if parent is not None and (chosen is None or speedups[parent] * HOPE >= chosen.hope):
                self._extend(self._steps[parent], speedup=speedups[parent])
                continue
            if chosen is not None:
                self._waiting.remove(chosen)
            return chosen.candidate if chosen else None

    @property
    def _has_waiting_singles(self) -> bool:
        return any(len(step.candidate.recipe) == 1 and not self._is_compiled(step) for step in self._waiting)

    def _learn(self, speedups: Mapping[str, float]) -> None:
        """What each rewrite has brought alone; one that was refused brings little where it is done beside another."""
        for candidate_id, speedup in speedups.items():
            step = self._steps.get(candidate_id)
            if step is not None and len(step.candidate.recipe) == 1:
                (name,) = step.candidate.recipe
                self._alone[name] = max(self._alone.get(name, 0.5), speedup)

    def _fastest_open(self, speedups: Mapping[str, float]) -> str | None:
        """The fastest text that was judged, but not yet rewritten further."""
        open_ids = [
            candidate_id
            for candidate_id, step in self._steps.items()
            if candidate_id not in self._closed
            and speedups.get(candidate_id, 0.0) >= WORTH_EXTENDING
            and len(step.candidate.recipe) < self._depth
            and not self._is_compiled(step)
        ]
        return max(open_ids, key=lambda candidate_id: speedups[candidate_id], default=None)

    def _extend(self, parent: _Step, *, speedup: float) -> None:
        """Line up every text that one more rewrite makes of this one."""
        self._closed.add(parent.candidate.candidate_id)
        for rewrite in self._rewrites:
            hope = speedup * self._alone.get(rewrite.name, HOPE_OF_GROUP.get(rewrite.group, HOPE))
            for draw in range(DRAWS):
                rng = random.Random(f"{self._seed} {parent.candidate.candidate_id} {rewrite.name} {draw}")
                program = rewrite.apply(parent.program, rng)
                if program is None:
                    break
                candidate = candidate_of(self._problem, program, (*parent.candidate.recipe, rewrite.name))
                if candidate.candidate_id not in self._steps:
                    self._steps[candidate.candidate_id] = step = _Step(candidate, program, hope)
                    self._waiting.append(step)

    def _is_compiled(self, step: _Step) -> bool:
        return not self._compiling.isdisjoint(step.candidate.recipe)
