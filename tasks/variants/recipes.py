"""Candidates for a GPU in a fixed order, the most promising first, for whoever can judge only a few of each problem."""

import random
from collections.abc import Iterator, Sequence

import libcst as cst

from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate
from tasks.variants.layout import laid_out
from tasks.variants.rewrites import rewrites_for
from tasks.variants.rewrites.affine import linear_by_addmm
from tasks.variants.rewrites.cuda_graph import compile_and_replay, replay_as_graph
from tasks.variants.rewrites.cuda_layers import benchmark_convolutions, compile_forward_tuned, keep_channels_last
from tasks.variants.rewrites.dispatch import call_layers_directly, call_losses_directly
from tasks.variants.rewrites.inlining import inlined
from tasks.variants.rewrites.triton import IN_TRITON
from tasks.variants.rewrites.triton_layers import layers_in_triton
from tasks.variants.rewrites.triton_multiplying import PRODUCT
from tasks.variants.rewrites.triton_recurrence import recurrence_in_triton
from tasks.variants.rewriting import ORIGIN, Rewrite, as_candidate_program, candidate_of

MOST_KERNELS = 6
Composed = tuple[cst.Module, tuple[str, ...]]
"""A program, and the rewrites that made it."""


class RecipeProvider:
    """Writes whole compositions: less to compute, kernels wherever some fit, and a compiler and a graph around.

    The first has all of it, since it times what it is made of and leaves out what does not pay. What is then left of
    most small problems is the library, so the next one calls that in the fewest words. What only one of those choices
    could be wrong about comes after, each for itself. Runs no code. Only for CUDA.
    """

    name = ORIGIN

    def __init__(self, device: str) -> None:
        self._rewrites = rewrites_for(device)
        self._kernels = tuple(each for each in self._rewrites if each.group == IN_TRITON)
        # PyTorch calls its torch.addmm for a linear layer without a view of the weight in Python.
        self._fusions = tuple(each for each in self._rewrites if each.group == "fusion" and each != linear_by_addmm)
        self._products = tuple(
            each
            for each in self._rewrites
            if each.group == PRODUCT and each not in (layers_in_triton, recurrence_in_triton)
        )

    def candidates(self, problem: Problem, *, seed: int) -> Iterator[Candidate]:
        """Each text once; a step of a recipe that does not apply is left out of it."""
        seen: set[str] = set()
        for program, recipe in self._programs(problem, random.Random(f"{seed} {problem.problem_id}")):
            candidate = candidate_of(problem, program, recipe)
            if recipe and candidate.candidate_id not in seen:
                seen.add(candidate.candidate_id)
                yield candidate

    def _programs(self, problem: Problem, rng: random.Random) -> Iterator[Composed]:
        plain = as_candidate_program(problem.source)
        unfused = laid_out(inlined(plain))
        # The library's own function wherever one does the same: what a kernel that does not pay leaves is fast too.
        start, called = _wherever(self._fusions, unfused, rng)
        bare = () if benchmark_convolutions.apply(plain, rng) is None else (benchmark_convolutions,)
        around = (*bare, replay_as_graph)
        changed = *self._changed("algebra", start, rng, called), _wherever(self._kernels, start, rng, called)
        with_some = [(program, names) for program, names in changed if names != called]
        singly = (*with_some, (start, called))
        multiplied = [self._multiplied(program, rng, names) for program, names in singly]
        with_kernels = [*with_some, *(each for each in multiplied if each[1] not in {names for _, names in singly})]
        lean, leanly = _applied((call_losses_directly, call_layers_directly), start, rng, called)
        program, names = multiplied[0] if multiplied[0][1] != called else (lean, leanly)
        # Who compiles gets convolutions from cuDNN all the same, and waits for minutes where there are many.
        is_compiled = not bare and compile_and_replay.apply(program, rng) is not None
        yield _applied((compile_and_replay,) if is_compiled else around, program, rng, names)
        yield _applied((compile_and_replay,), lean, rng, leanly)
        yield _applied(bare, lean, rng, leanly)
        for program, names in with_kernels:
            yield _applied(bare, program, rng, names)
        for program, names in with_kernels:
            yield _applied(around, program, rng, names)
        yield _applied(around, lean, rng, leanly)
        yield _applied(bare, plain, rng)
        yield _applied(around, plain, rng)
        yield _applied((compile_and_replay,), plain, rng)
        for program, names in self._changed("fusion", unfused, rng):
            yield _applied(around, program, rng, names)
        yield _applied((keep_channels_last, *around), plain, rng)
        yield _applied((compile_forward_tuned, replay_as_graph), plain, rng)

    def _multiplied(self, program: cst.Module, rng: random.Random, names: tuple[str, ...]) -> Composed:
        """The program with what multiplies in kernels: of all layers of a kind at once, or each for itself."""
        program, layered = _applied((layers_in_triton,), program, rng, names)
        if layered == names:
            program, layered = _wherever(self._products, program, rng, names)
        return _applied((recurrence_in_triton,), program, rng, layered)

    def _changed(
        self, group: str, program: cst.Module, rng: random.Random, names: tuple[str, ...] = ()
    ) -> Iterator[Composed]:
        """The program after each rewrite of a group that applies, with kernels in what is left."""
        for each in self._rewrites:
            changed = each.apply(program, rng) if each.group == group else None
            if changed is not None:
                yield _wherever(self._kernels, changed, rng, (*names, each.name))


def _applied(
    rewrites: Sequence[Rewrite], program: cst.Module, rng: random.Random, names: tuple[str, ...] = ()
) -> Composed:
    for each in rewrites:
        changed = each.apply(program, rng)
        if changed is not None:
            program, names = changed, (*names, each.name)
    return program, names


def _wherever(
    rewrites: Sequence[Rewrite], program: cst.Module, rng: random.Random, names: tuple[str, ...] = ()
) -> Composed:
    """The program with rewrites of one kind in as many places as there are for them."""
    for _ in range(MOST_KERNELS):
        found = ((each.name, each.apply(program, rng)) for each in rewrites)
        name, changed = next(((name, made) for name, made in found if made is not None), ("", None))
        if changed is None:
            break
        program, names = changed, (*names, name)
    return program, names
