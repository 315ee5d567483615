"""Parsing Python in threads."""

import ast
import threading

_in_turn = threading.Lock()


def parsed(source: str) -> ast.Module:
    """The syntax tree of a text, from any thread.

    CPython 3.11 counts the depth of all trees that are being made together, and raises SystemError when threads meet.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as ast.parse does.
    """
    with _in_turn:
        return ast.parse(source)
