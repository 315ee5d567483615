"""Statements that parse and say nothing: any function of torch, any number, in any place.

The phrases of real programs are soon known by heart, and whoever knows them completes a program without a look at the
prompt. These can only be copied.
"""

import ast
import inspect
import random
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import nn

from tasks.variants.grammar import Grammar

Kind = Literal["member", "statement", "return"]

_KEPT = {"self", "torch", "nn", "F"}
_FUNCTIONS = sorted(
    name
    for name in set(dir(torch)) & set(dir(torch.Tensor))
    if not name.startswith("_") and not name.endswith("_") and callable(getattr(torch, name))
)
_MODULES = sorted(
    name for name, member in vars(nn).items() if inspect.isclass(member) and issubclass(member, nn.Module)
)
_COMPOUNDS = (
    "torch.<function>(<part><option>)",
    "torch.<function>(<part>, <part><option>)",
    "F.<function>(<part><option>)",
    "F.<function>(<part>, <part><option>)",
    "<name>.<function>(<argument>)",
    "<name>.<function>(<part>, <part><option>)",
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
    "function": _FUNCTIONS,
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
        """A statement like the given, indented one, with a name or a number of it replaced, or two."""
        for _ in range(rng.choice([1, 1, 2])):
            places = _places(statement)
            if places:
                place = rng.choice(places)
                lines = statement.encode().split(b"\n")
                line = lines[place.line]
                new = self._grammar.derive("number", rng).lstrip("-") if place.is_number else self._word(rng)
                lines[place.line] = line[: place.start] + new.encode() + line[place.end :]
                statement = b"\n".join(lines).decode()
        return statement

    def _word(self, rng: random.Random) -> str:
        return rng.choice([rng.choice(self._names), rng.choice(self._names), rng.choice(_FUNCTIONS)])


class _Place(NamedTuple):
    """Where a name or a number stands."""

    line: int
    start: int
    """In bytes from the beginning of the line, as the end."""
    end: int
    is_number: bool


def _places(statement: str) -> list[_Place]:
    # Below a line of its own the statement may stay indented; that line is number 1.
    tree = ast.parse(f"if True:\n{statement}")
    # Positions inside formatted strings are only right from Python 3.12 on.
    formatted = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    places = []
    for node in ast.walk(tree):
        if node in formatted:
            continue
        match node:
            case ast.Name(id=name) if name not in _KEPT:
                places.append(_Place(node.lineno - 2, node.col_offset, node.end_col_offset or 0, is_number=False))
            case ast.Attribute(attr=name):
                end = node.end_col_offset or 0
                places.append(_Place((node.end_lineno or 0) - 2, end - len(name.encode()), end, is_number=False))
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                places.append(_Place(node.lineno - 2, node.col_offset, node.end_col_offset or 0, is_number=True))
    return places
