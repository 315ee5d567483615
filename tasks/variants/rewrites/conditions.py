"""What rules ask of the shapes that their holes stand for. A shape that is not known fulfils nothing."""

import math
from collections.abc import Callable
from functools import cache

from tasks.variants.rewrites.matching import Match
from tasks.variants.rewrites.shapes import broadcast_shape, dimensions

Condition = Callable[[Match], bool]


@cache
def ranks(**expected: int) -> Condition:
    """Holes, named without their underscore, with so many dimensions."""
    return lambda match: all(match.rank(f"_{hole}") == rank for hole, rank in expected.items())


@cache
def numbers(*holes: str) -> Condition:
    """Holes that are Python numbers."""
    return lambda match: all(match.number(f"_{hole}") is not None for hole in holes)


@cache
def tensors(*holes: str) -> Condition:
    """Holes that are tensors of known shapes: functions that want tensors refuse numbers."""

    def condition(match: Match) -> bool:
        values = [match.value(f"_{hole}") for hole in holes]
        return all(value is not None and value.number is None for value in values)

    return condition


@cache
def both(*conditions: Condition) -> Condition:
    return lambda match: all(condition(match) for condition in conditions)


@cache
def fits(hole: str, *, into: str) -> Condition:
    """One hole's tensor broadcasts to the shape of another's."""

    def condition(match: Match) -> bool:
        small, large = match.value(f"_{hole}"), match.value(f"_{into}")
        return small is not None and large is not None and broadcast_shape(small.shape, large.shape) == large.shape

    return condition


@cache
def trailing(hole: str, *, of: str) -> Condition:
    """A dimension argument that names the last dimension, or the last few."""

    def condition(match: Match) -> bool:
        value = match.value(f"_{of}")
        named = dimensions(value, match.holes[f"_{hole}"]) if value else None
        return value is not None and bool(named) and named == list(range(value.rank - len(named or ()), value.rank))

    return condition


@cache
def vectors_of(*holes: str, of: str, dim: int = -1) -> Condition:
    """Holes that are vectors as long as one dimension of another hole."""

    def condition(match: Match) -> bool:
        value = match.value(f"_{of}")
        vectors = [match.value(f"_{hole}") for hole in holes]
        return value is not None and all(vector and vector.shape == (value.shape[dim],) for vector in vectors)

    return condition


def size(match: Match, hole: str) -> int:
    """Number of elements; what is not known counts as nothing."""
    value = match.value(hole)
    return math.prod(value.shape) if value else 0
