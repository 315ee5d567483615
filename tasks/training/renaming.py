"""Consistent renaming of a program's own identifiers across a reference and the candidates that go with it.

A renamed example can only be completed by copying names out of the prompt, which is what a problem never seen before
needs. Meaning is kept: a name is left alone wherever it might be more than a name.
"""

import ast
import builtins
import keyword
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tasks.training.places import Place, place_of, replaced

_KEPT = {*dir(builtins), *keyword.kwlist, *keyword.softkwlist, "self", "cls", "torch", "nn", "F", "math"}


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnNames:
    """Names a program binds itself and that can be renamed."""

    variables: frozenset[str]
    attributes: frozenset[str]
    """Attributes of self."""


def own_names(source: str) -> OwnNames:
    """The source's local variables, parameters, module constants and attributes of self."""
    scan = _scan(source)
    return OwnNames(
        variables=frozenset(scan.bound - scan.untouchable),
        attributes=frozenset(scan.own_attributes - scan.other_attributes - scan.untouchable),
    )


def rename_consistently(
    sources: Sequence[str], *, variables: Sequence[str], attributes: Sequence[str], rng: random.Random
) -> list[str]:
    """Every source with the first one's own names replaced by others, the same ones in all of them.

    Args:
        sources: the reference first; a name that only a later source has stays, since nothing foretells it.
        variables: names to choose from for variables and parameters.
        attributes: names to choose from for attributes.
        rng: decides which names change, and to what.
    """
    scans = [_scan(source) for source in sources]
    untouchable = set().union(*(scan.untouchable for scan in scans))
    foreign = set().union(*(scan.other_attributes for scan in scans))
    taken = set().union(*(scan.seen for scan in scans))
    new_variables = _mapping(sorted(scans[0].bound - untouchable), variables, taken, rng)
    taken |= set(new_variables.values())
    new_attributes = _mapping(sorted(scans[0].own_attributes - untouchable - foreign), attributes, taken, rng)
    return [
        replaced(
            source,
            [
                (place, new[place.word])
                for places, new in ((scan.variables, new_variables), (scan.attributes, new_attributes))
                for place in places
                if place.word in new
            ],
        )
        for source, scan in zip(sources, scans, strict=True)
    ]


def _mapping(names: Sequence[str], choices: Iterable[str], taken: set[str], rng: random.Random) -> dict[str, str]:
    free = sorted(set(choices) - taken - _KEPT)
    return dict(zip(names, rng.sample(free, k=min(len(names), len(free))), strict=False))


@dataclass(kw_only=True, slots=True)
class _Scan:
    bound: set[str]
    own_attributes: set[str]
    other_attributes: set[str]
    """Attributes of anything but self: a name among them may belong to torch."""
    untouchable: set[str]
    seen: set[str]
    variables: list[Place]
    """Where variables and parameters stand."""
    attributes: list[Place]
    """Where attributes of self do."""


@lru_cache(maxsize=512)  # the same few hundred programs are taught thousands of times, unless they are made up
def _scan(source: str) -> _Scan:
    scan = _Scan(
        bound=set(),
        own_attributes=set(),
        other_attributes=set(),
        untouchable=set(_KEPT),
        seen=set(),
        variables=[],
        attributes=[],
    )
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name):
                scan.seen.add(name)
                scan.variables.append(place_of(node, name))
                if isinstance(node.ctx, ast.Store):
                    scan.bound.add(name)
            case ast.arg(arg=name):
                scan.seen.add(name)
                scan.bound.add(name)
                scan.variables.append(Place(node.lineno, node.col_offset, name))  # what follows may be an annotation
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                scan.seen.add(name)
                scan.attributes.append(place_of(node, name))
                if isinstance(node.ctx, ast.Store):
                    scan.own_attributes.add(name)
            case ast.Attribute(attr=name):
                scan.seen.add(name)
                scan.other_attributes.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                scan.untouchable.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                scan.untouchable.add(name)
            case ast.alias(name=name, asname=asname):
                scan.untouchable.add(asname or name.split(".")[0])
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                scan.untouchable.update(names)
            case ast.keyword(arg=str(name)):
                # A keyword may name a parameter of our own function, or one of torch's.
                scan.untouchable.add(name)
            case ast.Constant(value=str(text)):
                # Names inside text: buffers by name, sources of other languages.
                scan.untouchable.update(re.findall(r"\w+", text))
            case ast.JoinedStr():
                # Positions inside formatted strings are only right from Python 3.12 on.
                scan.untouchable.update(part.id for part in ast.walk(node) if isinstance(part, ast.Name))
                scan.untouchable.update(part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute))
    scan.seen |= scan.untouchable
    return scan
