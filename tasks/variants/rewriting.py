"""The rewriting engine: a problem's text as a program, rewrites of programs, and sampled compositions of them.

A program is a libcst module that defines ModelNew. It also keeps get_inputs and get_init_inputs, because they say which
shapes come in; `render` leaves out whatever ModelNew does not need. What rewrites do is in tasks/variants/rewrites/.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate
from tasks.variants.layout import laid_out
from tasks.variants.names import defined_names, reachable, renamed
from tasks.variants.text import text_of

ORIGIN = "rewrites"
ENTRY = "ModelNew"
GENERATORS = ("get_inputs", "get_init_inputs")

Apply = Callable[[cst.Module, random.Random], cst.Module | None]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One change of a program; the docstring of `apply` says what it assumes."""

    name: str
    group: str
    """One of algebra, fusion, memory, graph, kernel, triton, product, dispatch, capture, faults."""
    apply: Apply = field(repr=False)
    """Returns the changed program, or None where it has nothing to change; several places are chosen between by rng."""


def rewrite(group: str) -> Callable[[Apply], Rewrite]:
    """Make a Rewrite of a function, named after it."""

    def decorate(apply: Apply) -> Rewrite:
        return Rewrite(name=apply.__name__, group=group, apply=apply)

    return decorate


def as_candidate_program(problem_source: str) -> cst.Module:
    """The problem's text with Model renamed, reduced to what ModelNew and the generators need, without comments."""
    module = renamed(with_annotations_as_texts(cst.parse_module(problem_source)), {"Model": ENTRY})
    needed = reachable(module, roots=(ENTRY, *GENERATORS))
    return laid_out(module.with_changes(body=[statement for statement in module.body if statement in needed]))


def with_annotations_as_texts(module: cst.Module) -> cst.Module:
    """Annotations as `from __future__ import annotations` makes them, where the module has that, and then need no more.

    They may name what is not there when they are read, such as the class that they are in.
    """
    has_import = any(
        isinstance(node, cst.ImportFrom)
        and isinstance(node.module, cst.Name)
        and node.module.value == "__future__"
        and "annotations" in defined_names(node)
        for statement in module.body
        if isinstance(statement, cst.SimpleStatementLine)
        for node in statement.body
    )
    return module.visit(_AnnotationsAsTexts()) if has_import else module


class _AnnotationsAsTexts(cst.CSTTransformer):
    def leave_Annotation(self, original_node: cst.Annotation, updated_node: cst.Annotation) -> cst.Annotation:
        text = cst.Module([]).code_for_node(original_node.annotation)
        return updated_node.with_changes(annotation=cst.SimpleString(repr(text)))


def render(program: cst.Module) -> str:
    """The text of a candidate: the imports it uses, what ModelNew needs, and ModelNew."""
    needed = reachable(program, roots=(ENTRY,))
    body = [
        statement
        for statement in program.body
        # A bare call, such as one that loads a library, defines nothing yet is there for a reason.
        if statement in needed or not defined_names(statement)
    ]
    return text_of(laid_out(program.with_changes(body=body)))


def candidate_of(problem: Problem, program: cst.Module, recipe: tuple[str, ...]) -> Candidate:
    return Candidate(problem_id=problem.problem_id, source=render(program), origin=ORIGIN, recipe=recipe)


def explore(
    problem: Problem,
    rewrites: Sequence[Rewrite],
    *,
    rng: random.Random,
    depth: int,
    draws: int,
    kept: dict[str, str] | None = None,
) -> Iterator[Candidate]:
    """Sample compositions of at most `depth` rewrites; every text comes once, the reference's own never.

    Args:
        problem: whose reference is rewritten.
        rewrites: what may be applied, also repeatedly.
        rng: decides everything, so equal states give equal candidates.
        depth: longest composition.
        draws: compositions sampled, whether or not they give a new text.
        kept: candidate ids by the text of their programs, of those that can be parents; what comes here is added. A
            parent is the latest of them on the way from the reference, which can always be one.
    """
    start = as_candidate_program(problem.source)
    reference = candidate_of(problem, start, ())
    kept = {} if kept is None else kept
    kept.setdefault(text_of(start), reference.candidate_id)
    seen = {reference.source}
    useless: set[tuple[str, str]] = set()
    for _ in range(draws):
        program, recipe, parent_id = start, tuple[str, ...](), None
        for _ in range(rng.randint(1, depth)):
            changed, name = _random_step(program, rewrites, rng=rng, useless=useless)
            if name is None:
                break
            parent_id = kept.get(text_of(program), parent_id)
            program, recipe = changed, (*recipe, name)
        candidate = candidate_of(problem, program, recipe)
        if candidate.source not in seen:
            seen.add(candidate.source)
            kept.setdefault(text_of(program), candidate.candidate_id)
            yield replace(candidate, parent_id=parent_id)


def _random_step(
    program: cst.Module, rewrites: Sequence[Rewrite], *, rng: random.Random, useless: set[tuple[str, str]]
) -> tuple[cst.Module, str | None]:
    """Apply one rewrite that changes the program; `useless` remembers those that did not, by text and name."""
    text = text_of(program)
    for candidate in rng.sample(rewrites, len(rewrites)):
        if (text, candidate.name) in useless:
            continue
        changed = candidate.apply(program, rng)
        if changed is not None and text_of(changed) != text:
            return changed, candidate.name
        useless.add((text, candidate.name))
    return program, None
