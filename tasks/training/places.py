"""Places of words in a source, and what to put there instead.

Positions inside formatted strings are only right from Python 3.12 on: whoever finds places leaves those out.
"""

import ast
from collections.abc import Iterable
from typing import NamedTuple


class Place(NamedTuple):
    """Where a word stands."""

    line: int
    """From 1."""
    start: int
    """In bytes from the beginning of the line."""
    word: str


def place_of(node: ast.Name | ast.Attribute | ast.Constant, word: str) -> Place:
    """Where the word of a parsed node stands, which is the last thing in it."""
    # Positions from ast.parse are always there.
    return Place(node.end_lineno or 0, (node.end_col_offset or 0) - len(word.encode()), word)


def replaced(source: str, changes: Iterable[tuple[Place, str]]) -> str:
    """The source with another word at each of the places."""
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    # From the last to the first, so that replacing one leaves the others where they are.
    for (number, start, old), new in sorted(changes, reverse=True):
        line = lines[number - 1]
        lines[number - 1] = line[:start] + new.encode() + line[start + len(old.encode()) :]
    return b"".join(lines).decode()
