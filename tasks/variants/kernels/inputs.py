"""What get_inputs and defaults say of forward's arguments, and what get_init_inputs says of the constructor's."""

import ast
import itertools
from contextlib import suppress
from dataclasses import dataclass

from tasks.variants.kernels.shapes import Shapes
from tasks.variants.kernels.statements import names_assigned
from tasks.variants.kernels.values import Value


@dataclass(frozen=True, slots=True)
class Inputs:
    """The arguments of a forward as it is called."""

    names: tuple[str, ...]
    """Of all, without self."""
    values: dict[str, Value]
    is_none: dict[str, bool]
    """Whether an argument is None, where that is known."""


def read_inputs(forward: ast.FunctionDef, generator: ast.FunctionDef, constants: Shapes) -> Inputs | None:
    """The arguments that a generator gives and those that it leaves out, or None where forward does not take them."""
    signature = forward.args
    positional = [argument.arg for argument in (*signature.posonlyargs, *signature.args)][1:]
    named = [argument.arg for argument in signature.kwonlyargs]
    needed = {*positional[: len(positional) - len(signature.defaults)]}
    needed |= {name for name, default in zip(named, signature.kw_defaults, strict=True) if default is None}
    given, nothing = _given(generator, positional, constants)
    if not needed <= given.keys() <= {*positional, *named}:
        return None
    if not tells_all(generator) and given.keys() != {*positional, *named}:
        return None  # what seems to be left out may be given
    left_out = {name: value for name, value in _literal_defaults(signature).items() if name not in given}
    is_none = {name: False for name, value in given.items() if value is not None} | dict.fromkeys(nothing, True)
    is_none |= {name: value is None for name, value in left_out.items()}
    return Inputs((*positional, *named), {**left_out, **given}, is_none)


def assign_all(body: list[ast.stmt], scope: Shapes) -> None:
    """Note what names are that statements give values."""
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                scope.values[name] = scope.of(value)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
                found = [scope.of(value) for value in values]
                scope.values |= {
                    each.id: one for each, one in zip(names, found, strict=True) if isinstance(each, ast.Name)
                }


def returned(function: ast.FunctionDef, scope: Shapes) -> tuple[Value, ...]:
    """The values that a function returns; none where it is not told how many."""
    local = Shapes(dict(scope.values))
    assign_all(function.body, local)
    last = function.body[-1]
    value = local.of(last.value) if isinstance(last, ast.Return) and last.value else ()
    return value if isinstance(value, tuple) else ()


def tells_all(function: ast.FunctionDef) -> bool:
    """Whether nothing can be in what a function returns but what stands in one list, tuple or mapping."""
    *lines, last = function.body
    if not isinstance(last, ast.Return) or not all(names_assigned(each) or _is_text(each) for each in lines):
        return False
    value: ast.expr | None = last.value
    if isinstance(value, ast.Name):
        said = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == value.id]
        given = [each.value for each in lines if isinstance(each, ast.Assign) and names_assigned(each) == (value.id,)]
        if len(said) != 2 or len(given) != 1:  # what else says its name may change it
            return False
        (value,) = given
    match value:
        case ast.Dict(keys=keys):
            return all(isinstance(key, ast.Constant) and isinstance(key.value, str) for key in keys)
        case ast.List(elts=values) | ast.Tuple(elts=values):
            return not any(isinstance(each, ast.Starred) for each in values)
    return False


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def returns_all(function: ast.FunctionDef) -> bool:
    """Whether the text of what a function returns has an expression for each value."""
    match function.body[-1]:
        case ast.Return(value=ast.List(elts=values) | ast.Tuple(elts=values)):
            return not any(isinstance(value, ast.Starred) for value in values)
    return False


def _given(generator: ast.FunctionDef, positional: list[str], constants: Shapes) -> tuple[dict[str, Value], set[str]]:
    """Values by the argument, and which of them the text says are None; what is too much is called by a number."""
    names = itertools.chain(positional, map(str, itertools.count()))
    local = Shapes(dict(constants.values))
    assign_all(generator.body, local)
    match generator.body[-1]:
        case ast.Return(value=ast.Dict(keys=keys, values=values)):
            given = dict(zip((str(local.of(key)) for key in keys), values, strict=True))
        case ast.Return(value=ast.List(elts=values) | ast.Tuple(elts=values)) if returns_all(generator):
            given = dict(zip(names, values, strict=False))
        case _ if _unpacks(generator):
            return dict.fromkeys(positional), set()
        case _:
            return dict(zip(names, returned(generator, constants), strict=False)), set()
    nothing = {name for name, value in given.items() if isinstance(value, ast.Constant) and value.value is None}
    return {name: local.of(value) for name, value in given.items()}, nothing


def _unpacks(generator: ast.FunctionDef) -> bool:
    """Whether a list or a tuple is made of others, so that its text does not tell how long it is."""
    lists = (node for node in ast.walk(generator) if isinstance(node, ast.List | ast.Tuple))
    return any(isinstance(each, ast.Starred) for node in lists for each in node.elts)


def _literal_defaults(signature: ast.arguments) -> dict[str, Value]:
    """Values of the arguments that may be left out, and then are numbers, texts, None or tuples of these."""
    positional = [*signature.posonlyargs, *signature.args]
    last = positional[len(positional) - len(signature.defaults) :]
    found = {}
    given = zip(last, signature.defaults, strict=True), zip(signature.kwonlyargs, signature.kw_defaults, strict=True)
    for argument, default in itertools.chain(*given):
        with suppress(ValueError, TypeError):  # which is what a missing or another default raises
            found[argument.arg] = ast.literal_eval(default)  # type: ignore[arg-type]
    return found
