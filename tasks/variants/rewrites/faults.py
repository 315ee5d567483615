"""Mistakes as a language model writes them: filtering means something only if there is something to filter.

Every docstring says what is wrong, and what the judge should say. A fault may by chance be harmless in one program,
such as a bias dropped where it is zero; what counts is the verdict.
"""

import random

import libcst as cst
import libcst.matchers as m

from tasks.variants.layout import parenthesised
from tasks.variants.rewrites.forward import find_method, parameters_of
from tasks.variants.rewrites.places import calls, change_one
from tasks.variants.rewriting import rewrite

_TIGHT = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
_DIM = m.Arg(keyword=m.Name("dim"))
_TORCH = m.Name("torch") | m.Name("F")


@rewrite("faults")
def drop_term(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A summand or factor is forgotten, such as a bias: wrong_output."""
    return change_one(program, rng, lambda node: node.left if _is_arithmetic(node) else None)  # type: ignore[attr-defined]


@rewrite("faults")
def swap_operands(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The operands of a difference, a quotient or a matrix product are exchanged: wrong_output or crashed."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if m.matches(node, m.BinaryOperation(operator=m.Subtract() | m.Divide() | m.MatrixMultiply())):
            return node.with_changes(left=parenthesised(node.right), right=parenthesised(node.left))  # type: ignore[attr-defined]
        if calls(node, "matmul", "mm", "bmm", "sub", "div") and len(node.args) == 2:  # type: ignore[attr-defined]
            first, second = node.args  # type: ignore[attr-defined]
            return node.with_changes(
                args=[first.with_changes(value=second.value), second.with_changes(value=first.value)]
            )
        return None

    return change_one(program, rng, change)


@rewrite("faults")
def reduce_wrong_dimension(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A dimension is confused with the first, or the first with the last: wrong_output."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if not m.matches(node, _DIM) or m.matches(node, m.Arg(value=m.Tuple())):
            return None
        wrong = "-1" if m.matches(node, m.Arg(value=m.Integer("0"))) else "0"
        return node.with_changes(value=cst.parse_expression(wrong))

    return change_one(program, rng, change)


@rewrite("faults")
def sum_for_mean(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A mean is not divided by the number of elements: wrong_output."""
    return change_one(program, rng, lambda node: _renamed_call(node, {"mean": "sum"}))


@rewrite("faults")
def wrong_activation(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A function is taken for a similar one: wrong_output."""
    similar = {
        "relu": "sigmoid", "sigmoid": "tanh", "tanh": "sigmoid", "softmax": "log_softmax", "softplus": "relu",
        "exp": "expm1", "log": "log1p", "sqrt": "rsqrt", "tril": "triu", "triu": "tril", "cumsum": "cumprod",
    }  # fmt: skip
    return change_one(program, rng, lambda node: _renamed_call(node, similar))


@rewrite("faults")
def wrong_constant(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A number is copied wrongly: wrong_output, or correct where it hardly matters, such as in an epsilon."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if not isinstance(node, cst.Float) or float(node.value) in (0.0, float("inf")):
            return None
        value = float(node.value)
        return cst.Float(repr(value * rng.choice([0.5, 2.0, 10.0]) if abs(value) != 1.0 else 2.0))

    return change_one(program, rng, change)


@rewrite("faults")
def forget_epsilon(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """What keeps a root or a quotient from zero is left out: wrong_output where that is ever close, else correct."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        match node:
            case cst.BinaryOperation(left=left, operator=cst.Add(), right=cst.Float(value=text)) if float(text) < 1e-3:
                return left
        return None

    return change_one(program, rng, change)


@rewrite("faults")
def miss_last_slice(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A slice or a loop ends one too early: crashed or wrong_output."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if isinstance(node, cst.Slice) and node.upper is not None:
            upper = cst.BinaryOperation(parenthesised(node.upper), cst.Subtract(), cst.Integer("1"))
            return node.with_changes(upper=upper)
        if m.matches(node, m.Call(func=m.Name("range"))):
            *others, last = node.args  # type: ignore[attr-defined]
            shorter = cst.BinaryOperation(parenthesised(last.value), cst.Subtract(), cst.Integer("1"))
            return node.with_changes(args=[*others, last.with_changes(value=shorter)])
        return None

    return change_one(program, rng, change)


@rewrite("faults")
def forget_transpose(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A transposition is left out: crashed where the shapes do not fit any more, else wrong_output."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if calls(node, "transpose", "t", "permute") and not m.matches(node, m.Call(func=m.Attribute(value=_TORCH))):
            return node.func.value  # type: ignore[attr-defined]
        return node.value if m.matches(node, m.Attribute(attr=m.Name("T") | m.Name("mT"))) else None  # type: ignore

    return change_one(program, rng, change)


@rewrite("faults")
def forget_keepdim(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A reduced dimension disappears that was to be broadcast: crashed or wrong_output."""
    keepdim = m.Arg(keyword=m.Name("keepdim"), value=m.Name("True"))

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if not m.matches(node, m.Call(args=[m.AtLeastN(n=1), keepdim])):
            return None
        *others, last = node.args[:-1]  # type: ignore[attr-defined]
        return node.with_changes(args=[*others, last.with_changes(comma=cst.MaybeSentinel.DEFAULT)])

    return change_one(program, rng, change)


@rewrite("faults")
def confuse_variances(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The biased variance is taken for the unbiased or the reverse: wrong_output."""
    unbiased = m.Arg(keyword=m.Name("unbiased") | m.Name("correction"))

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if not calls(node, "var", "std"):
            return None
        kept = [argument for argument in node.args if not m.matches(argument, unbiased)]  # type: ignore[attr-defined]
        if len(kept) == len(node.args):  # type: ignore[attr-defined]
            kept.append(cst.Arg(cst.Name("False"), keyword=cst.Name("unbiased"), equal=_TIGHT))
        else:
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return node.with_changes(args=kept)

    return change_one(program, rng, change)


@rewrite("faults")
def use_undefined_name(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A variable is misspelt where it is read: crashed."""
    forward = find_method(program, "forward")
    if forward is None:
        return None
    names = set(parameters_of(forward))
    return change_one(program, rng, lambda node: cst.Name(f"{node.value}_") if _is_name(node, names) else None)  # type: ignore


@rewrite("faults")
def use_wrong_attribute(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """An attribute of self is called something else in forward than in __init__: crashed."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if m.matches(node, m.Attribute(value=m.Name("self"))):
            return node.with_changes(attr=cst.Name(f"{node.attr.value}_layer"))  # type: ignore[attr-defined]
        return None

    return change_one(program, rng, change)


@rewrite("faults")
def forget_import(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A function of a library that is not imported: crashed."""
    numpy = cst.Name("np")

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if m.matches(node, m.Call(func=m.Attribute(value=m.Name("torch")))):
            return node.with_deep_changes(node.func, value=numpy)  # type: ignore[attr-defined]
        return None

    return change_one(program, rng, change)


@rewrite("faults")
def call_missing_function(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A function that torch does not have: crashed."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if m.matches(node, m.Call(func=m.Attribute(value=_TORCH))):
            name = f"fast_{node.func.attr.value}"  # type: ignore[attr-defined]
            return node.with_deep_changes(node.func, attr=cst.Name(name))  # type: ignore[attr-defined]
        return None

    return change_one(program, rng, change)


@rewrite("faults")
def change_constructor(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The constructor wants one more argument than the reference's: crashed."""
    init = find_method(program, "__init__")
    if init is None:
        return None
    params = [*init.params.params, cst.Param(cst.Name("device"))]
    changed = program.deep_replace(init, init.with_changes(params=init.params.with_changes(params=params)))
    assert isinstance(changed, cst.Module)
    return changed


@rewrite("faults")
def assign_backwards(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """An assignment has its sides exchanged, which is not Python: compile_error."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)], value=cst.Call() as value):
                return node.with_changes(targets=[cst.AssignTarget(value)], value=name)  # type: ignore[arg-type]
        return None

    return change_one(program, rng, change)


def _is_arithmetic(node: cst.CSTNode) -> bool:
    return m.matches(node, m.BinaryOperation(operator=m.Add() | m.Subtract() | m.Multiply() | m.Divide()))


def _is_name(node: cst.CSTNode, names: set[str]) -> bool:
    return isinstance(node, cst.Name) and node.value in names


def _renamed_call(node: cst.CSTNode, names: dict[str, str]) -> cst.CSTNode | None:
    for name, other in names.items():
        if calls(node, name):
            return node.with_deep_changes(node.func, attr=cst.Name(other))  # type: ignore[attr-defined]
    return None
