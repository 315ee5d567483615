"""Places in a forward where something can be changed: found by trying, chosen by chance."""

import random
from collections.abc import Callable

import libcst as cst

from tasks.variants.layout import parenthesised
from tasks.variants.rewrites.forward import find_method

Change = Callable[[cst.CSTNode], cst.CSTNode | None]
"""What a node becomes, or None where there is nothing to change."""


def change_one(program: cst.Module, rng: random.Random, change: Change) -> cst.Module | None:
    """The program with one of the nodes changed that can be, or None where none can."""
    forward = find_method(program, "forward")
    if forward is None:
        return None
    finder = _Finder(change)
    forward.body.visit(finder)
    if not finder.found:
        return None
    old, new = rng.choice(finder.found)
    changed = program.deep_replace(old, parenthesised(new) if isinstance(new, cst.BaseExpression) else new)
    assert isinstance(changed, cst.Module)
    return changed


def calls(node: cst.CSTNode, *names: str) -> bool:
    """Whether a node calls a function or a method of one of these names."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))):
            return name in names
    return False


def calls_library(node: cst.CSTNode) -> bool:
    """Whether a node calls a function of torch or of torch.nn.functional by its usual name."""
    match node:
        case cst.Call(func=cst.Attribute(value=cst.Name(value="torch" | "F"))):
            return True
    return False


class _Finder(cst.CSTVisitor):
    def __init__(self, change: Change) -> None:
        self.change = change
        self.found: list[tuple[cst.CSTNode, cst.CSTNode]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        new = self.change(node)
        if new is not None:
            self.found.append((node, new))
        # A target is no place for a mistake: what it binds would merely be called something else.
        return not isinstance(node, cst.AssignTarget)
