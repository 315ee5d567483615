"""Finds patterns in terms.

A name with a leading underscore is a hole: it stands for any expression, for the same one wherever it occurs again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tasks.variants.rewrites.shapes import Value
from tasks.variants.rewrites.terms import UNORDERED, Term, product, total
from tasks.variants.rewrites.view import View

NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Match:
    """How a pattern was found: what its holes stand for and which temporaries were looked into."""

    site: Term
    holes: Mapping[str, Term]
    through: frozenset[str]
    view: View
    rest: tuple[Term, ...] = ()
    """Addends or factors beside those the pattern names, where it matched a part of a sum or product."""

    def value(self, hole: str) -> Value | None:
        return self.view.value(self.holes[hole])

    def rank(self, hole: str) -> int | None:
        value = self.value(hole)
        return value.rank if value else None

    def number(self, hole: str) -> float | int | None:
        value = self.value(hole)
        return self.holes[hole].number if value is None else value.number


@dataclass(frozen=True, slots=True)
class _Found:
    holes: Mapping[str, Term]
    through: frozenset[str]


def unify(
    pattern: Term, site: Term, *, may_split: bool = False
) -> Iterator[tuple[Mapping[str, Term], frozenset[str], tuple[Term, ...]]]:
    """Every way in which the pattern finds the site: holes, temporaries looked into, and what a sum has besides.

    Args:
        may_split: whether a part of the site's sum or product may be found.
    """
    empty = _Found({}, NOTHING)
    if pattern.head in UNORDERED and pattern.head == site.head:
        through = site.through
        for found, rest in _choose(list(pattern.args), list(site.args), empty):
            if may_split or not rest:
                yield found.holes, found.through | through, tuple(rest)
        return
    for found in _unify(pattern, site, empty):
        yield found.holes, found.through, ()


def _unify(pattern: Term, term: Term, found: _Found) -> Iterator[_Found]:
    if pattern.is_hole:
        held = found.holes.get(pattern.head)
        if held is None:
            yield _Found({**found.holes, pattern.head: term}, found.through)
        elif held == term:
            yield found
        return
    if pattern.number is not None:
        if term.number is not None and _close(pattern.number, term.number):
            yield _Found(found.holes, found.through | term.through)
        return
    if pattern.head != term.head:
        return
    found = _Found(found.holes, found.through | term.through)
    if pattern.head in UNORDERED:
        yield from _unify_unordered(pattern, term, found)
    elif len(pattern.args) == len(term.args):
        yield from _unify_in_order(pattern.args, term.args, found)


def _unify_in_order(patterns: Sequence[Term], terms: Sequence[Term], found: _Found) -> Iterator[_Found]:
    if not patterns:
        yield found
        return
    for first in _unify(patterns[0], terms[0], found):
        yield from _unify_in_order(patterns[1:], terms[1:], first)


def _unify_unordered(pattern: Term, term: Term, found: _Found) -> Iterator[_Found]:
    """Every assignment of arguments; one open hole may stand for all the arguments left over."""
    for chosen, rest in _choose(list(pattern.args), list(term.args), found):
        if not rest:
            yield chosen
    holes = [arg for arg in pattern.args if arg.is_hole and arg.head not in found.holes]
    if holes and len(term.args) > len(pattern.args):
        others = [arg for arg in pattern.args if arg is not holes[-1]]
        combine = total if pattern.head == "add" else product
        for chosen, rest in _choose(others, list(term.args), found):
            together = combine(rest, inlinable=NOTHING)
            yield _Found({**chosen.holes, holes[-1].head: together}, chosen.through)


def _choose(patterns: list[Term], terms: list[Term], found: _Found) -> Iterator[tuple[_Found, list[Term]]]:
    """Find a different term for each pattern, in every way; yields what was found and the terms left over."""
    if not patterns:
        yield found, terms
        return
    if len(patterns) > len(terms):
        return
    first = min(patterns, key=lambda pattern: pattern.is_hole)  # what is specific narrows the choice down
    others = [pattern for pattern in patterns if pattern is not first]
    for place, term in enumerate(terms):
        remaining = terms[:place] + terms[place + 1 :]
        for chosen in _unify(first, term, found):
            yield from _choose(others, remaining, chosen)


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-6 * max(abs(one), abs(other))
