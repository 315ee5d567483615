"""Proposes rewrites of a reference: each alone at first, then compositions of those that made it faster."""

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tasks.judge.verdict import Status
from tasks.problems.problem import Problem
from tasks.search.experience import LEAST, Experience
from tasks.search.found import Scored
from tasks.search.proposers import Proposer
from tasks.variants.builtin import COMPILED, FAULTS
from tasks.variants.candidate import Candidate
from tasks.variants.layout import laid_out
from tasks.variants.rewrites import REWRITES
from tasks.variants.rewrites.cuda_graph import CAPTURE
from tasks.variants.rewrites.inlining import inlined
from tasks.variants.rewriting import ORIGIN, Rewrite, as_candidate_program, candidate_of
from tasks.variants.shortening import shortened
from tasks.variants.text import text_of

logger = logging.getLogger(__name__)

HOPE_OF_GROUP = {
    "algebra": 1.9,
    "kernel": 1.7,
    "triton": 1.7,
    "product": 1.4,
    CAPTURE: 1.5,
    "fusion": 1.3,
    COMPILED: 1.15,
}
"""The factor that is hoped for of a rewrite that was not judged; on the built-in problems those of algebra, kernel and
fusion bring about as much alone, as a geometric mean."""
HOPE_WHERE_DEAR = 0.1
"""Of what compiles, where nothing else takes seconds to build or capture: judging it takes ten times as long as others,
and alone it is as fast as a baseline. So it comes last."""
HOPE = 1.05
"""Of any other rewrite: small edits."""
STUCK = 12
"""After so many judgements that brought nothing faster, the fastest text is compiled, whatever else is hoped for."""
WORTH_EXTENDING = 0.97
"""Speedup below which a text is not rewritten further: one that is only as fast as the reference may open a way."""
DRAWS = 2
"""Times that each rewrite is applied to a text: where it fits several places, it chooses one at random."""
MESSAGE_CHARS = 160
"""Of what a failing rewrite says: a syntax tree in a message takes thousands."""
SAME_AS_BASELINE = ("compile_forward", "compile_forward_whole", "compile_forward_replayed")
"""Not proposed: without a composition they are baselines; with one compile_forward_static and compile_and_replay are
as good."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A program that was reached by rewriting."""

    candidate: Candidate
    program: str
    """The whole text with what says which shapes come in; trees of all of them would take gigabytes."""
    hope: float
    """The speedup that is expected of it."""
    parent_id: str | None = None


def starting_programs(problem: Problem) -> list[cst.Module]:
    """Equal programs to rewrite: with what forward calls put into it, where that changes anything, and as it is."""
    plain = as_candidate_program(problem.source)
    return [laid_out(inlined(plain)), plain] if inlined(plain).code != plain.code else [plain]


class Compositions(Proposer):
    """Best first: a composition is hoped to be as fast as its parent times what its last rewrite brought alone.

    What that is, where it was not judged alone, other problems tell, and its group where there is no experience. So
    rewrites of whole chains come before small edits, and those are made to the fastest text rather than to the first.

    Runs no code: everything is done on the syntax tree.

    Args:
        seed: decides which of several places a rewrite chooses.
        start: what is rewritten, equal to the reference; the reference itself where it is None.
        depth: longest composition.
        experience: of searches beside this one, which add to it and draw from it.
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
        experience: Experience | None = None,
    ) -> None:
        self._problem = problem
        self._seed = seed
        self._depth = depth
        self._rewrites = [each for each in rewrites if each.group != FAULTS and each.name not in SAME_AS_BASELINE]
        self._compiling = {each.name for each in rewrites if each.group == COMPILED}
        self._hopes = HOPE_OF_GROUP
        if all(each.group != CAPTURE for each in rewrites):
            self._hopes = {**HOPE_OF_GROUP, COMPILED: HOPE_WHERE_DEAR}
        start = start or as_candidate_program(problem.source)
        origin = _Step(candidate_of(problem, start, ()), text_of(start), 1.0)
        self._origin_id = origin.candidate.candidate_id
        self._steps = {self._origin_id: origin}
        self._waiting: list[_Step] = []
        self._closed: set[str] = set()
        self._failed: set[str] = set()
        self._alone: dict[str, float] = {}
        self._experience = experience or Experience()
        self._num_learned = 0
        self._best, self._stuck_since = 1.0, 0
        self._extend(origin, speedup=1.0)

    def propose(self, found: Sequence[Scored]) -> Candidate | None:
        self._learn(found)
        chosen = self._next(_speedups(found))
        if len(found) - self._stuck_since >= STUCK:
            chosen = max(filter(self._is_compiled, self._waiting), key=lambda step: step.hope, default=chosen)
            self._stuck_since = len(found)
        if chosen is not None:
            self._waiting.remove(chosen)
        return chosen.candidate if chosen else None

    def hope(self, found: Sequence[Scored]) -> float:
        self._learn(found)
        chosen = self._next(_speedups(found))
        return chosen.hope if chosen else 0.0

    def _next(self, speedups: Mapping[str, float]) -> _Step | None:
        """The waiting step that is hoped to be the fastest, after what may bring faster ones was rewritten further."""
        # What somebody else has proposed meanwhile has told what it is worth.
        self._waiting = [step for step in self._waiting if step.candidate.candidate_id not in speedups]
        while True:
            chosen = max(self._waiting, key=lambda step: step.hope, default=None)
            parent = None if self._has_promising_singles else self._fastest_open(speedups)
            if parent is None or (chosen is not None and speedups[parent] * HOPE < chosen.hope):
                return chosen
            self._extend(self._steps[parent], speedup=speedups[parent])

    @property
    def _has_promising_singles(self) -> bool:
        singles = (step for step in self._waiting if len(step.candidate.recipe) == 1)
        return any(step.hope > HOPE and not self._is_compiled(step) for step in singles)

    def _learn(self, found: Sequence[Scored]) -> None:
        """What each rewrite has brought; one that was refused brings little where it is done beside another."""
        speedups = {self._origin_id: 1.0, **_speedups(found)}
        for number, scored in enumerate(found[self._num_learned :], self._num_learned + 1):
            speedup = scored.speedup or 0.0
            if speedup > self._best:
                self._best, self._stuck_since = speedup, number
            step = self._steps.get(scored.candidate.candidate_id)
            before = speedups.get(step.parent_id or "") if step else None
            if step is None or not before or self._is_compiled(step) or scored.verdict.status is Status.UNSTABLE:
                continue  # nothing that tells what the rewrite is worth
            name, factor = step.candidate.recipe[-1], max(speedup / before, LEAST)
            self._experience.note(name, factor)
            if len(step.candidate.recipe) == 1:
                self._alone[name] = max(self._alone.get(name, LEAST), factor)
        self._num_learned = len(found)

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
        start = cst.parse_module(parent.program)
        for rewrite in self._rewrites:
            hope = speedup * (self._alone.get(rewrite.name) or self._expected(rewrite))
            for draw in range(DRAWS):
                rng = random.Random(f"{self._seed} {parent.candidate.candidate_id} {rewrite.name} {draw}")
                program = self._applied(rewrite, start, rng)
                if program is None:
                    break
                candidate = candidate_of(self._problem, program, (*parent.candidate.recipe, rewrite.name))
                if candidate.candidate_id not in self._steps:
                    step = _Step(candidate, text_of(program), hope, parent.candidate.candidate_id)
                    self._steps[candidate.candidate_id] = step
                    self._waiting.append(step)

    def _applied(self, rewrite: Rewrite, start: cst.Module, rng: random.Random) -> cst.Module | None:
        """The rewritten program; None also where the rewrite cannot deal with it, which is told once."""
        try:
            return rewrite.apply(start, rng)
        except Exception as error:  # noqa: BLE001 - a defect of one rewrite costs what it would have brought
            if rewrite.name not in self._failed:
                self._failed.add(rewrite.name)
                reason = shortened(" ".join(f"{type(error).__name__}: {error}".split()), MESSAGE_CHARS)
                logger.warning("rewrite %s fails on %s and is left out: %s", rewrite.name, self._problem.family, reason)
            return None

    def _expected(self, rewrite: Rewrite) -> float:
        return self._experience.expected(rewrite.name, prior=self._hopes.get(rewrite.group, HOPE))

    def _is_compiled(self, step: _Step) -> bool:
        return not self._compiling.isdisjoint(step.candidate.recipe)


def _speedups(found: Sequence[Scored]) -> dict[str, float]:
    return {each.candidate.candidate_id: each.speedup or 0.0 for each in found}
