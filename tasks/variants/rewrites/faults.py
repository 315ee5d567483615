"""Mistakes as a language model writes them: filtering means something only if there is something to filter.

Every docstring says what is wrong, and what the judge should say. A fault may by chance be harmless in one program,
such as a bias dropped where it is zero; what counts is the verdict.
"""

import random

import libcst as cst

from tasks.variants.layout import parenthesised
from tasks.variants.rewrites.forward import find_method, parameters_of
from tasks.variants.rewrites.places import calls, calls_library, change_one
from tasks.variants.rewriting import rewrite

_TIGHT = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


@rewrite("faults")
def drop_term(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A summand or factor is forgotten, such as a bias: wrong_output."""
    return change_one(program, rng, lambda node: node.left if _is_arithmetic(node) else None)  # type: ignore[attr-defined]


@rewrite("faults")
def swap_operands(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The operands of a difference, a quotient or a matrix product are exchanged: wrong_output or crashed."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        match node:
            case cst.BinaryOperation(operator=cst.Subtract() | cst.Divide() | cst.MatrixMultiply()):
                return node.with_changes(left=parenthesised(node.right), right=parenthesised(node.left))
            case cst.Call(args=[first, second]) if calls(node, "matmul", "mm", "bmm", "sub", "div"):
                exchanged = [first.with_changes(value=second.value), second.with_changes(value=first.value)]
                return node.with_changes(args=exchanged)
        return None

    return change_one(program, rng, change)


@rewrite("faults")
def reduce_wrong_dimension(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A dimension is confused with the first, or the first with the last: wrong_output."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        match node:
            case cst.Arg(keyword=cst.Name(value="dim"), value=cst.Integer(value="0")):
                return node.with_changes(value=cst.parse_expression("-1"))
            case cst.Arg(keyword=cst.Name(value="dim"), value=cst.Integer() | cst.UnaryOperation()):
                return node.with_changes(value=cst.Integer("0"))
        return None

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
        match node:
            case cst.Slice(upper=cst.BaseExpression() as upper):
                return node.with_changes(upper=_one_less(upper))
            case cst.Call(func=cst.Name(value="range"), args=[*others, last]):
                return node.with_changes(args=[*others, last.with_changes(value=_one_less(last.value))])
        return None

    return change_one(program, rng, change)


@rewrite("faults")
def forget_transpose(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A transposition is left out: crashed where the shapes do not fit any more, else wrong_output."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        match node:
            case cst.Call(func=cst.Attribute(value=value)) if calls(node, "transpose", "t", "permute"):
                return None if calls_library(node) else value
            case cst.Attribute(value=value, attr=cst.Name(value="T" | "mT")):
                return value
        return None

    return change_one(program, rng, change)


@rewrite("faults")
def forget_keepdim(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A reduced dimension disappears that was to be broadcast: crashed or wrong_output."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        match node:
            case cst.Call(args=[*others, before, cst.Arg(keyword=cst.Name(value="keepdim"))]):
                return node.with_changes(args=[*others, before.with_changes(comma=cst.MaybeSentinel.DEFAULT)])
        return None

    return change_one(program, rng, change)


@rewrite("faults")
def confuse_variances(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The biased variance is taken for the unbiased or the reverse: wrong_output."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if not isinstance(node, cst.Call) or not calls(node, "var", "std"):
            return None
        kept = [argument for argument in node.args if not _is_keyword(argument, "unbiased", "correction")]
        if len(kept) == len(node.args):
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
        match node:
            case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=name)):
                return node.with_changes(attr=cst.Name(f"{name}_layer"))
        return None

    return change_one(program, rng, change)


@rewrite("faults")
def forget_import(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A function of a library that is not imported: crashed."""
    numpy = cst.Name("np")

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        match node:
            case cst.Call(func=cst.Attribute(value=cst.Name(value="torch")) as function):
                return node.with_changes(func=function.with_changes(value=numpy))
        return None

    return change_one(program, rng, change)


@rewrite("faults")
def call_missing_function(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A function that torch does not have: crashed."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        match node:
            case cst.Call(func=cst.Attribute(attr=name) as function) if calls_library(node):
                return node.with_changes(func=function.with_changes(attr=cst.Name(f"fast_{name.value}")))
        return None

    return change_one(program, rng, change)


@rewrite("faults")
def change_constructor(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The constructor wants one more argument than the reference's: crashed."""
    init = find_method(program, "__init__")
    if init is None:
        return None
    params = init.params
    given = [*params.posonly_params, *params.params, *params.kwonly_params]
    taken = {param.name.value for param in given}
    wanted = cst.Param(cst.Name("device" if "device" not in taken else "place"))
    is_starred = isinstance(params.star_arg, cst.Param)
    if is_starred or any(param.default is not None for param in given):
        # Nothing without a default may follow; by name alone it is missed however many arguments are given.
        star = params.star_arg if is_starred else cst.ParamStar()
        params = params.with_changes(star_arg=star, kwonly_params=[*params.kwonly_params, wanted])
    else:
        params = params.with_changes(params=[*params.params, wanted])
    changed = program.deep_replace(init, init.with_changes(params=params))
    assert isinstance(changed, cst.Module)
    return changed


def _is_arithmetic(node: cst.CSTNode) -> bool:
    match node:
        case cst.BinaryOperation(operator=cst.Add() | cst.Subtract() | cst.Multiply() | cst.Divide()):
            return True
    return False


def _is_keyword(argument: cst.Arg, *names: str) -> bool:
    return argument.keyword is not None and argument.keyword.value in names


def _one_less(value: cst.BaseExpression) -> cst.BinaryOperation:
    return cst.BinaryOperation(parenthesised(value), cst.Subtract(), cst.Integer("1"))


def _is_name(node: cst.CSTNode, names: set[str]) -> bool:
    return isinstance(node, cst.Name) and node.value in names


def _renamed_call(node: cst.CSTNode, names: dict[str, str]) -> cst.CSTNode | None:
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name)) as function) if name in names:
            return node.with_changes(func=function.with_changes(attr=cst.Name(names[name])))
    return None
