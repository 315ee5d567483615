"""Memory: results written over temporaries that nobody reads again."""

import random
from collections.abc import Callable

import libcst as cst

from tasks.variants.layout import parenthesised
from tasks.variants.names import walk
from tasks.variants.rewrites.forward import (
    assignment,
    is_compound,
    names_left_alone,
    parameters_of,
    reused_names,
    statements_of,
)
from tasks.variants.rewrites.fresh import ENTRYWISE_METHODS, WITH_INPLACE_FLAG, function_of, is_new
from tasks.variants.rewrites.view import View, view_of
from tasks.variants.rewriting import rewrite

_ARITHMETIC: dict[type[cst.CSTNode], str] = {
    cst.Add: "add",
    cst.Subtract: "sub",
    cst.Multiply: "mul",
    cst.Divide: "div",
}
_TIGHT = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
_COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


@rewrite("memory")
def work_in_place(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """An entrywise operation on a temporary that nothing else reads is done in its memory.

    Assumes only a forward pass: autograd may refuse to go back through what was overwritten.
    """
    return _one_overwritten(program, rng, _in_place)


@rewrite("memory")
def work_in_place_everywhere(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Every entrywise operation on a temporary that nothing else reads is done in its memory.

    Assumes only a forward pass: autograd may refuse to go back through what was overwritten.
    """
    changed = _one_overwritten(program, rng, _in_place)
    result = None
    while changed is not None:
        result, changed = changed, _one_overwritten(changed, rng, _in_place)
    return result


@rewrite("memory")
def write_into_temporary(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """An entrywise operation gets a temporary that nothing else reads as its out=.

    Assumes that no gradients are asked for, so it leaves models with parameters alone.
    """
    view = view_of(program)
    if view is None or view.has_parameters():
        return None
    return _one_overwritten(program, rng, _with_out)


def _one_overwritten(
    program: cst.Module, rng: random.Random, spelling: Callable[[cst.BaseExpression, View], cst.BaseExpression | None]
) -> cst.Module | None:
    view = view_of(program)
    if view is None:
        return None
    places = [
        (node, written)
        for statement in statements_of(view.forward)
        if not is_compound(statement)
        for node in _operations(statement)
        if (written := spelling(node, view)) is not None
    ]
    if not places:
        return None
    node, written = rng.choice(places)
    changed = view.program.deep_replace(node, written)
    assert isinstance(changed, cst.Module)
    return reused_names(changed)


def _operations(statement: cst.CSTNode) -> list[cst.BaseExpression]:
    return [node for node in walk(statement) if isinstance(node, cst.Call | cst.BinaryOperation)]


def _in_place(node: cst.BaseExpression, view: View) -> cst.BaseExpression | None:
    """The operation spelt so that it overwrites its operand, where that is allowed."""
    if isinstance(node, cst.BinaryOperation):
        return _arithmetic_in_place(node, view)
    name, operand, others = function_of(node)
    if operand is None or not _is_own(operand, node, view):
        return None
    if name in ENTRYWISE_METHODS:
        return cst.Call(cst.Attribute(parenthesised(operand), cst.Name(f"{name}_")), others)
    if name in WITH_INPLACE_FLAG and not others and isinstance(node, cst.Call):
        flag = cst.Arg(cst.Name("True"), keyword=cst.Name("inplace"), equal=_TIGHT)
        return node.with_changes(args=[*(each.with_changes(comma=_COMMA) for each in node.args), flag])
    return None


def _arithmetic_in_place(node: cst.BinaryOperation, view: View) -> cst.BaseExpression | None:
    name = _ARITHMETIC.get(type(node.operator))
    sides = [(node.left, node.right)]
    if name in ("add", "mul"):
        sides.append((node.right, node.left))
    for operand, other in sides:
        if name is not None and _is_own(operand, node, view):
            return cst.Call(cst.Attribute(parenthesised(operand), cst.Name(f"{name}_")), [cst.Arg(other)])
    return None


def _with_out(node: cst.BaseExpression, view: View) -> cst.BaseExpression | None:
    """The operation with an operand's memory as its out=, where that is allowed."""
    operand: cst.BaseExpression | None
    if isinstance(node, cst.BinaryOperation):
        name, operand, arguments = _ARITHMETIC.get(type(node.operator)), node.left, [node.left, node.right]
    else:
        function, operand, others = function_of(node)
        name, arguments = (
            (function if function in ENTRYWISE_METHODS else None),
            [operand] if operand and not others else [],
        )
    if name is None or not arguments or not isinstance(operand, cst.Name) or not _is_own(operand, node, view):
        return None
    given = [cst.Arg(each, comma=_COMMA) for each in arguments if each is not None]
    function_node = cst.Attribute(cst.Name("torch"), cst.Name(name))
    return cst.Call(function_node, [*given, cst.Arg(operand, keyword=cst.Name("out"), equal=_TIGHT)])


def _is_own(operand: cst.BaseExpression, site: cst.BaseExpression, view: View) -> bool:
    """Whether an operand's memory was made in this forward, is read here only, and holds the site's result."""
    if isinstance(operand, cst.Name):
        made = _only_assignment(operand.value, view) if view.reads[operand.value] == 1 else None
        if made is None or not is_new(made, view):
            return False
    elif not is_new(operand, view):
        return False
    if operand not in view.terms or site not in view.terms:
        return False  # within what is not read, such as a comprehension, which may compute it several times
    held, result = view.value(view.terms[operand]), view.value(view.terms[site])
    return held is not None and held == result and held.kind == "float" and held.number is None


def _only_assignment(name: str, view: View) -> cst.BaseExpression | None:
    """What a temporary is made of, if it is assigned once and not in a loop."""
    if name in names_left_alone(view.forward) or name in parameters_of(view.forward):
        return None
    made = [plain[1] for each in statements_of(view.forward) if (plain := assignment(each)) and plain[0] == name]
    return made[0] if len(made) == 1 else None
