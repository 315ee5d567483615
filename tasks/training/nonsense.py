"""Statements that parse and say nothing: functions, modules and numbers in any place.

The phrases of real programs are soon known by heart, and whoever knows them completes a program without a look at the
prompt. These can only be copied. Functions and modules are those of the torch that is installed, so that another
release gives other nonsense.
"""

import ast
import inspect
import random
from collections.abc import Sequence
from typing import Literal

import torch
from torch import nn

from tasks.training.grammar import Grammar
from tasks.training.places import Place, place_of, replaced

Kind = Literal["member", "statement", "return"]

_KEPT = {"self", "torch", "nn", "F"}


def _public(module: object) -> set[str]:
    return {name for name in dir(module) if name.islower() and name[0] != "_" and name[-1] != "_"}


_METHODS = sorted(name for name in _public(torch.Tensor) & _public(torch) if callable(getattr(torch, name)))
_FUNCTIONALS = sorted(name for name in _public(nn.functional) if inspect.isroutine(getattr(nn.functional, name)))
_MODULES = sorted(
    name for name, member in vars(nn).items() if inspect.isclass(member) and issubclass(member, nn.Module)
)
_COMPOUNDS = (
    "torch.<method>(<part><option>)",
    "torch.<method>(<part>, <part><option>)",
    "F.<functional>(<part><option>)",
    "F.<functional>(<part>, <part><option>)",
    "<name>.<method>(<argument>)",
    "<name>.<method>(<part>, <part><option>)",
    "(<part> <operator> <part>)",
    "<part> <operator> <part>",
    "self.<attribute>(<part>)",
    "<name>[<index>, <index>]",
    "[<part> for <name> in <name>]",
)
_PHRASES: dict[str, Sequence[str]] = {
    "statement": (
        "<name> = <expression>",
        "<name> = <expression>",
        "<name> = <expression>",
        "<name>, <name> = <expression>",
        "<name> += <term>",
        "for <name> in range(<leaf>):\n    <name> = <term>",
        "if <term>:\n    <name> = <term>",
    ),
    "member": (
        "self.<attribute> = nn.<module>(<argument>)",
        "self.<attribute> = nn.<module>(<leaf>, <leaf>)",
        "self.<attribute> = nn.Parameter(<term>)",
        "self.<attribute> = <name>",
    ),
    "return": ("return <expression>",),
    "expression": [compound.replace("<part>", "<term>") for compound in _COMPOUNDS],
    "term": [compound.replace("<part>", "<leaf>") for compound in _COMPOUNDS],
    "leaf": ("<name>", "<name>", "<number>", "self.<attribute>", "<name>.<property>"),
    "argument": ("", "<leaf>", "<keyword>=<number>"),
    "option": ("", "", ", <keyword>=<number>"),
    "index": (":", "...", "None", "<number>", "<number>:"),
    "number": (
        "<digit>",
        "<leading><digit>",
        "<leading><digit><digit>",
        "<digit>.<digit>",
        "<digit>.<digit><digit><digit>",
        "0.<digit><digit>",
        "<digit>e-<leading>",
        "-<leading>",
    ),
    "digit": "0123456789",
    "leading": "123456789",
    "operator": ("+", "-", "*", "/", "@", "**", "//", "%", ">", "<", ">=", "=="),
    "keyword": ("dim", "dtype", "eps", "out", "alpha", "beta", "offset", "step", "start", "end", "p", "stride"),
    "property": ("shape", "T", "mT", "ndim", "dtype", "device", "real", "size"),
    "method": _METHODS,
    "functional": _FUNCTIONALS,
    "module": _MODULES,
}


class Nonsense:
    """Phrases about some names and attributes of self."""

    def __init__(self, names: Sequence[str], attributes: Sequence[str]) -> None:
        self._names = names
        self._grammar = Grammar({**_PHRASES, "name": names, "attribute": attributes})

    def phrase(self, kind: Kind, rng: random.Random) -> str:
        """One as __init__ has them ("member") or forward does; a statement may have another below it, indented."""
        return self._grammar.derive(kind, rng)

    def varied(self, statement: str, rng: random.Random) -> str:
        """The statement, which may be indented, with one or two of its names and numbers replaced, where it has any."""
        # Below a line of its own it parses as it is.
        block = f"if True:\n{statement}"
        places = _places(block)
        chosen = rng.sample(places, k=min(rng.choice([1, 1, 2]), len(places)))
        return replaced(block, [(place, self._other(place.word, rng)) for place in chosen]).partition("\n")[2]

    def _other(self, word: str, rng: random.Random) -> str:
        other = word
        while other == word:
            if word[0].isdigit() or word[0] == ".":
                other = self._grammar.derive("number", rng).lstrip("-")
            else:
                other = rng.choice([rng.choice(self._names), rng.choice(self._names), rng.choice(_METHODS)])
        return other


def _places(source: str) -> list[Place]:
    """Where names, attributes and numbers stand, but for those that every program uses."""
    tree = ast.parse(source)
    formatted = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    places = []
    for node in ast.walk(tree):
        match node:
            case _ if node in formatted:
                pass
            case ast.Name(id=name) if name not in _KEPT:
                places.append(place_of(node, name))
            case ast.Attribute(attr=name):
                places.append(place_of(node, name))
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                places.append(place_of(node, ast.get_source_segment(source, node) or ""))
    return places
