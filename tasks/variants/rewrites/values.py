"""Values that a program's text tells: of its inputs, its attributes and its constants."""

import ast
from collections.abc import Mapping

import libcst as cst

from tasks.variants.attributes import ANYTHING
from tasks.variants.kernels.inputs import tells_all
from tasks.variants.kernels.model import changed
from tasks.variants.names import walk
from tasks.variants.rewrites.forward import assignment, find_method, positional_parameters_of, returned, statements_of
from tasks.variants.rewrites.reading import Reader, code_of
from tasks.variants.rewrites.shapes import Infer, Value, infer
from tasks.variants.rewrites.terms import Term

# A repeated dimension or an unusual constructor must not cost a program its other rewrites.
_MISSING_ARGUMENT = (IndexError, ValueError, KeyError)


def attributes_of(program: cst.Module) -> tuple[dict[str, Term], dict[str, Value]]:
    """Constructors and values of what __init__ sets, also in modules inside, and the values of module constants."""
    known = _constants(program)
    init = find_method(program, "__init__")
    if init is None:
        return {}, known
    given = dict(known)
    for name, argument in _generated(program, "get_init_inputs", positional_parameters_of(init)).items():
        _learn(given, name, argument, given)
    modules, attributes = _set_by(init, given, known, program)
    return modules, known | attributes


def inputs_of(program: cst.Module, forward: cst.FunctionDef, known: dict[str, Value]) -> dict[str, Value]:
    found = dict(known)
    given = _generated(program, "get_inputs", positional_parameters_of(forward))
    left_out = _defaults(forward) if _tells_all(program, "get_inputs") else {}
    for name, term in (left_out | given).items():
        _learn(found, name, term, known)
    return found


def value_in_scope(term: Term, scope: Mapping[str, Value], of: Infer) -> Value | None:
    if not term.args and term.number is None:
        return scope.get(term.head)
    try:
        return infer(term, of)
    except _MISSING_ARGUMENT:
        return None


def _set_by(
    init: cst.FunctionDef, given: Mapping[str, Value], known: Mapping[str, Value], program: cst.Module
) -> tuple[dict[str, Term], dict[str, Value]]:
    """Constructors and values of the attributes that one constructor sets.

    Args:
        given: values of its arguments and of module constants.
        known: values of module constants.
    """
    local, modules = dict(given), dict[str, Term]()
    for statement in statements_of(init):
        attribute, value = _attribute_set(statement)
        if attribute is None or value is None:
            continue
        modules[attribute] = Reader().read(value)
        _learn(local, attribute, modules[attribute], local)
    attributes = {name: value for name, value in local.items() if name.startswith("self.")}
    (function,) = ast.parse(code_of(init)).body
    assert isinstance(function, ast.FunctionDef)
    unsure = {f"self.{name}" for name in changed(function)}
    for attribute in modules if f"self.{ANYTHING}" in unsure else modules.keys() & unsure:
        modules[attribute] = Term(f"{modules[attribute].head}, handed on")  # which has parameters too
    attributes |= _parameters_of_modules(modules, local)
    for attribute, made in list(modules.items()):
        inner = find_method(program, "__init__", of=made.head)
        if inner is not None:
            arguments = {**known, **_arguments(made, positional_parameters_of(inner), local)}
            inner_modules, inner_attributes = _set_by(inner, arguments, known, program)
            modules |= {_within(attribute, name): term for name, term in inner_modules.items()}
            attributes |= {_within(attribute, name): value for name, value in inner_attributes.items()}
    return modules, attributes


def _arguments(made: Term, parameters: list[str], scope: dict[str, Value]) -> dict[str, Value]:
    """Values of the arguments of a constructor, by name."""
    named = {arg.head[1:]: arg.args[0] for arg in made.args if arg.head.startswith("=")}
    positional = [arg for arg in made.args if not arg.head.startswith("=")]
    given = {**dict(zip(parameters, positional, strict=False)), **named}
    values = {name: _static_value(arg, scope) for name, arg in given.items()}
    return {name: value for name, value in values.items() if value is not None}


def _within(attribute: str, name: str) -> str:
    return f"{attribute}.{name.removeprefix('self.')}"


def _attribute_set(statement: cst.CSTNode) -> tuple[str | None, cst.BaseExpression | None]:
    match statement:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name(value="self"), attr=name))],
                    value=value,
                )
            ]
        ):
            return f"self.{name.value}", value
        case cst.SimpleStatementLine(
            body=[
                cst.Expr(
                    value=cst.Call(
                        func=cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value="register_buffer")),
                        args=[cst.Arg(value=cst.SimpleString() as name), cst.Arg(value=value), *_],
                    )
                )
            ]
        ):
            return f"self.{name.raw_value}", value
    return None, None


def _parameters_of_modules(modules: dict[str, Term], local: dict[str, Value]) -> dict[str, Value]:
    """Shapes of the weights of linear layers and the sizes they were made with."""
    found: dict[str, Value] = {}
    for attribute, made in modules.items():
        sizes = [_static_value(arg, local) for arg in made.args[:2]]
        numbers = [size.number for size in sizes if size is not None]
        if made.head == "nn.Conv2d" and len(numbers) == 2 and len(made.args) > 2 and made.args[2].number is not None:
            fan_in, fan_out, width = (int(each) for each in (*numbers, made.args[2].number) if each is not None)
            found[f"{attribute}.weight"] = Value((fan_out, fan_in, width, width))
            found[f"{attribute}.bias"] = Value((fan_out,))
        if made.head == "nn.Linear" and len(numbers) == 2 and all(isinstance(each, int) for each in numbers):
            fan_in, fan_out = (int(each) for each in numbers if each is not None)
            found[f"{attribute}.weight"] = Value((fan_out, fan_in))
            found[f"{attribute}.bias"] = Value((fan_out,))
            found[f"{attribute}.in_features"] = Value((), "integer", fan_in)
            found[f"{attribute}.out_features"] = Value((), "integer", fan_out)
    return found


def _constants(program: cst.Module) -> dict[str, Value]:
    known: dict[str, Value] = {}
    for statement in program.body:
        plain = assignment(statement)
        if plain:
            _learn(known, plain[0], Reader().read(plain[1]), known)
    return known


def _defaults(function: cst.FunctionDef) -> dict[str, Term]:
    parameters = (each for each in walk(function.params) if isinstance(each, cst.Param))
    return {each.name.value: Reader().read(each.default) for each in parameters if each.default is not None}


def _generated(program: cst.Module, name: str, parameters: list[str]) -> dict[str, Term]:
    """Terms of the arguments that a generator returns, by position or by name, with its temporaries looked into."""
    generator = _function(program, name)
    return _returned_arguments(generator, parameters) if generator else {}


def _tells_all(program: cst.Module, name: str) -> bool:
    generator = _function(program, name)
    return generator is not None and any(
        isinstance(each, ast.FunctionDef) and tells_all(each) for each in ast.parse(code_of(generator)).body
    )


def _function(program: cst.Module, name: str) -> cst.FunctionDef | None:
    found = (each for each in program.body if isinstance(each, cst.FunctionDef) and each.name.value == name)
    return next(found, None)


def _returned_arguments(function: cst.FunctionDef, parameters: list[str]) -> dict[str, Term]:
    reader = Reader()
    for statement in statements_of(function):
        plain, value = assignment(statement), returned(statement)
        if plain:
            reader.definitions[plain[0]] = reader.read(plain[1])
        elif isinstance(value, cst.Dict):
            pairs = [(each.key, each.value) for each in value.elements if isinstance(each, cst.DictElement)]
            return {key.raw_value: reader.read(item) for key, item in pairs if isinstance(key, cst.SimpleString)}
        elif value is not None:
            sequence = reader.read(value)
            is_told = sequence.head == "sequence" and not any(
                isinstance(each, cst.StarredElement) for each in walk(value)
            )
            return dict(zip(parameters, sequence.args, strict=False)) if is_told else {}
    return {}


def _learn(known: dict[str, Value], name: str, term: Term, scope: dict[str, Value]) -> None:
    value = _static_value(term, scope)
    if value is not None:
        known[name] = value


def _static_value(term: Term, scope: dict[str, Value]) -> Value | None:
    return value_in_scope(term, scope, lambda arg: _static_value(arg, scope))
