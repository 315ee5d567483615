"""Statements of a forward as the kernels see them: what they bind, what only checks, and which are executed at all."""

import ast
from collections.abc import Sequence

_IS: dict[bool, type[ast.cmpop]] = {True: ast.Is, False: ast.IsNot}


def names_of(target: ast.expr) -> tuple[str, ...] | None:
    """The name that an assignment's target is, or the several that a value is unpacked into; None for all others."""
    match target:
        case ast.Name(id=name):
            return (name,)
        case ast.Tuple(elts=elements) | ast.List(elts=elements) if len(elements) > 1:
            names = tuple(each.id for each in elements if isinstance(each, ast.Name))
            return names if len(names) == len(elements) else None
    return None


def names_assigned(statement: ast.stmt) -> tuple[str, ...] | None:
    """Names that get the value of an assignment, or its parts where they are several; None of other statements."""
    match statement:
        case ast.Assign(targets=[target]):
            return names_of(target)
    return None


def names_stored(tree: ast.AST) -> set[str]:
    """Variables that get a value anywhere in a tree."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def is_check(statement: ast.AST) -> bool:
    """Whether all that it does is to raise, or not."""
    match statement:
        case ast.Assert() | ast.If(body=[ast.Raise()], orelse=[]):
            return True
    return False


def settled(body: Sequence[ast.stmt], is_none: dict[str, bool]) -> list[ast.stmt]:
    """The statements that are executed, with an assertion for each branch that arguments decide by being None or not.

    Those keep it from being something else for other arguments. Several values for as many names come one by one.

    Args:
        body: of a forward, or of a branch of it.
        is_none: whether a name's value is None, where that is known; kept up to date.
    """
    found: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.If(
                test=ast.Compare(
                    left=ast.Name(id=name) as left,
                    ops=[ast.Is() | ast.IsNot() as operator],
                    comparators=[ast.Constant(value=None)] as nothing,
                )
            ) if name in is_none:
                holds = is_none[name] is isinstance(operator, ast.Is)
                found.append(ast.Assert(ast.Compare(left, [_IS[is_none[name]]()], nothing)))
                found += settled(statement.body if holds else statement.orelse, is_none)
            case ast.Assign(value=value) if not _names_in(value) & {*(names_assigned(statement) or ())}:
                found += one_by_one(statement)
            case _:
                found.append(statement)
        for name in names_stored(statement) & is_none.keys():
            del is_none[name]
        if found and isinstance(found[-1], ast.Return):
            break
    return found


def one_by_one(statement: ast.stmt) -> list[ast.stmt]:
    """An assignment of several values to as many targets as an assignment for each; other statements as they are."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            if not any(isinstance(each, ast.Starred) for each in (*targets, *values)):
                pairs = zip(targets, values, strict=True)
                return [ast.copy_location(ast.Assign([target], value), statement) for target, value in pairs]
    return [statement]


def _names_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
