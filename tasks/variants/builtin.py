"""The built-in provider: the reference itself, its rewrites, compositions of them, and drafts with mistakes."""

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import libcst as cst

from tasks.params import GenerateVariantsParams
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate
from tasks.variants.rewrites import REWRITES
from tasks.variants.rewriting import ORIGIN, Rewrite, as_candidate_program, candidate_of, explore
from tasks.variants.text import text_of

FAULTS = "faults"
# What is compiled costs the judge seconds instead of milliseconds.
COMPILED = "graph"


class BuiltinProvider:
    """Needs no network and runs no code: everything is done on the syntax tree.

    At most one of a problem's early candidates is compiled, and nothing else is done to that one.

    Args:
        params: depth and draws of the compositions, and how many candidates are compiled or carry a fault.
        rewrites: what may be applied; those of the group faults only to make the faulty ones.
    """

    name = ORIGIN

    def __init__(self, params: GenerateVariantsParams, *, rewrites: Sequence[Rewrite] = REWRITES) -> None:
        self.params = params
        self.rewrites = tuple(each for each in rewrites if each.group not in (FAULTS, COMPILED))
        self.compiled = tuple(each for each in rewrites if each.group == COMPILED)
        self.faults = tuple(each for each in rewrites if each.group == FAULTS)

    def candidates(self, problem: Problem, *, seed: int) -> Iterator[Candidate]:
        """The reference first, then single rewrites and compositions in turn, with faulty texts among them."""
        rng = random.Random(f"{seed} {problem.problem_id}")
        kept: dict[str, str] = {}
        compositions = explore(
            problem,
            self.rewrites,
            rng=random.Random(rng.random()),
            depth=self.params.depth,
            draws=self.params.draws,
            kept=kept,
        )
        sound = _alternating(self._singles(problem, rng=random.Random(rng.random()), kept=kept), compositions)
        faulty = self._faulty(problem, rng=random.Random(rng.random()), kept=kept)
        reference_id = candidate_of(problem, as_candidate_program(problem.source), ()).candidate_id
        return _distinct(_mixed(sound, faulty, share=self.params.faulty_share), reference_id=reference_id)

    def _singles(self, problem: Problem, *, rng: random.Random, kept: dict[str, str]) -> Iterator[Candidate]:
        """The reference and every rewrite of it that applies, one group after the other in turn."""
        program = as_candidate_program(problem.source)
        reference = candidate_of(problem, program, ())
        yield reference
        compiled = rng.sample(self.compiled, len(self.compiled))
        early = 1 if rng.random() < self.params.compiled_share else 0
        # The others come last, for a problem with little else to do to it.
        for each in (*_by_turns((*self.rewrites, *compiled[:early]), rng=rng), *compiled[early:]):
            changed = each.apply(program, rng)
            if changed is not None:
                candidate = candidate_of(problem, changed, (each.name,))
                kept.setdefault(text_of(changed), candidate.candidate_id)
                yield replace(candidate, parent_id=reference.candidate_id)

    def _faulty(self, problem: Problem, *, rng: random.Random, kept: Mapping[str, str]) -> Iterator[Candidate]:
        """Programs with a fault, half of them rewritten before."""
        start = as_candidate_program(problem.source)
        reference_id = candidate_of(problem, start, ()).candidate_id
        for _ in range(self.params.draws):
            program, recipe = start, tuple[str, ...]()
            if rng.random() < 0.5:
                program, recipe = _applied(self.rewrites, start, rng=rng)
            broken, fault = _applied(self.faults, program, rng=rng)
            if fault:
                candidate = candidate_of(problem, broken, (*recipe, *fault))
                yield replace(candidate, parent_id=kept.get(text_of(program), reference_id))


def _applied(
    rewrites: Sequence[Rewrite], program: cst.Module, *, rng: random.Random
) -> tuple[cst.Module, tuple[str, ...]]:
    """The program after the first rewrite, in random order, that changes it, and that rewrite's name as a recipe."""
    for each in rng.sample(rewrites, len(rewrites)):
        changed = each.apply(program, rng)
        if changed is not None:
            return changed, (each.name,)
    return program, ()


def _by_turns(rewrites: Sequence[Rewrite], *, rng: random.Random) -> Iterator[Rewrite]:
    """All rewrites in random order, with the groups taking turns, so that a caller who stops early has seen each."""
    shuffled = rng.sample(rewrites, len(rewrites))
    groups = sorted({each.group for each in rewrites})
    queues = [[each for each in shuffled if each.group == group] for group in rng.sample(groups, len(groups))]
    for turn in itertools.zip_longest(*queues):
        yield from (each for each in turn if each is not None)


def _alternating(first: Iterable[Candidate], second: Iterable[Candidate]) -> Iterator[Candidate]:
    for pair in itertools.zip_longest(first, second):
        yield from (each for each in pair if each is not None)


def _mixed(sound: Iterable[Candidate], faulty: Iterator[Candidate], *, share: float) -> Iterator[Candidate]:
    """All the sound ones, with faulty ones between them so that those make up their share at any time."""
    num_faulty = 0
    for num_sound, candidate in enumerate(sound, start=1):
        yield candidate
        while num_faulty + 1 <= share * (num_sound + num_faulty + 1):
            broken = next(faulty, None)
            if broken is None:
                break
            yield broken
            num_faulty += 1


def _distinct(candidates: Iterable[Candidate], *, reference_id: str) -> Iterator[Candidate]:
    """Each text once; the reference stands in for a parent that comes later, since a caller may stop between them."""
    seen: set[str] = set()
    for candidate in candidates:
        if candidate.candidate_id not in seen:
            known = (each for each in (candidate.parent_id, reference_id) if each in seen)
            yield replace(candidate, parent_id=next(known, None))
            seen.add(candidate.candidate_id)
