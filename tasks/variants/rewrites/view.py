"""What is known about a program without running it: its terms, their shapes, and which temporaries are read how often."""

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

import libcst as cst

from tasks.variants.names import used_names
from tasks.variants.rewrites.forward import (
    assignment,
    find_method,
    names_left_alone,
    parameters_of,
    read_counts,
    returned,
    single_assignment,
    statements_of,
    writes_in_place,
)
from tasks.variants.rewrites.reading import Reader
from tasks.variants.rewrites.shapes import Value, infer
from tasks.variants.rewrites.terms import Term

# A repeated dimension or an unusual constructor must not cost a program its other rewrites.
_MISSING_ARGUMENT = (IndexError, ValueError, KeyError)


@dataclass(frozen=True, slots=True)
class View:
    """A program with every temporary of forward assigned once, and what was read from it."""

    program: cst.Module
    forward: cst.FunctionDef
    modules: dict[str, Term]
    """Constructor of every attribute that is set in __init__, such as "self.linear"."""
    reads: Counter[str]
    """How often each temporary is read."""
    known: dict[str, Value]
    """Values of inputs, attributes and module constants."""
    sites: list[Term] = field(default_factory=list)
    """Every expression of forward, outer ones after the inner ones they hold."""
    definitions: dict[str, Term] = field(default_factory=dict)
    """What temporaries hold, as far as it cannot change before it is read."""

    def value(self, term: Term) -> Value | None:
        known = self.known.get(term.head) if not term.args else None
        if known is not None:
            return known
        if not term.args and term.number is None:
            return None
        try:
            return infer(term, self.value)
        except _MISSING_ARGUMENT:
            return None

    def rank(self, term: Term) -> int | None:
        value = self.value(term)
        return value.rank if value else None

    def has_parameters(self) -> bool:
        return any(made.head.startswith("nn.") for made in self.modules.values())


@lru_cache(maxsize=64)
def view_of(program: cst.Module) -> View | None:
    """The view of a program; None where it has no forward with an ordinary body."""
    single = single_assignment(program)
    forward = find_method(single, "forward") if single else None
    if single is None or forward is None:
        return None
    modules, known = _attributes(single)
    known |= _inputs(single, forward, known)
    statements = statements_of(forward)
    reads = read_counts(statements)
    fixed = names_left_alone(forward)
    view = View(single, forward, modules, reads, known)
    inlinable = frozenset(name for name, count in reads.items() if count == 1)
    reader = Reader(inlinable=inlinable, modules=modules, rank_of=view.rank)
    for statement in statements:
        _read_statement(statement, reader, fixed=fixed)
        view.definitions.update(reader.definitions)
    view.sites.extend(reader.terms)
    return view


def _read_statement(statement: cst.CSTNode, reader: Reader, *, fixed: set[str]) -> None:
    """Read its expressions and remember what it assigns, unless that may change before it is read."""
    writes = writes_in_place(statement)
    if writes:
        reader.definitions.clear()
    plain = assignment(statement)
    if plain is None:
        statement.visit(_ExpressionVisitor(reader))
        return
    name, value = plain
    term = reader.read(value)
    if name not in fixed and not writes and not fixed & set(used_names(value)):
        reader.definitions[name] = term


def _attributes(program: cst.Module) -> tuple[dict[str, Term], dict[str, Value]]:
    """Constructors and values of what __init__ sets, and the values of module constants."""
    known = _constants(program)
    modules: dict[str, Term] = {}
    init = find_method(program, "__init__")
    if init is None:
        return modules, known
    generator = _generated(program, "get_init_inputs")
    local = dict(known)
    for name, argument in zip(parameters_of(init), generator, strict=False):
        _learn(local, name, argument, local)
    for statement in statements_of(init):
        attribute, value = _attribute_set(statement)
        if attribute is None or value is None:
            continue
        modules[attribute] = Reader().read(value)
        _learn(local, attribute, modules[attribute], local)
    attributes = {name: value for name, value in local.items() if name.startswith("self.")}
    attributes |= _parameters_of_modules(modules, local)
    return modules, known | attributes


def _attribute_set(statement: cst.CSTNode) -> tuple[str | None, cst.BaseExpression | None]:
    match statement:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name(value="self"), attr=name))], value=value
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
            return f"self.{name.evaluated_value}", value
    return None, None


def _parameters_of_modules(modules: dict[str, Term], local: dict[str, Value]) -> dict[str, Value]:
    """Shapes of the weights of linear layers and the sizes they were made with."""
    found: dict[str, Value] = {}
    for attribute, made in modules.items():
        sizes = [_value(arg, local) for arg in made.args[:2]]
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


def _inputs(program: cst.Module, forward: cst.FunctionDef, known: dict[str, Value]) -> dict[str, Value]:
    found = dict(known)
    for name, term in zip(parameters_of(forward), _generated(program, "get_inputs"), strict=False):
        _learn(found, name, term, known)
    return found


def _generated(program: cst.Module, name: str) -> list[Term]:
    """Terms of the elements of the list that a generator returns, with its temporaries looked into."""
    for statement in program.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value == name:
            return _returned_elements(statement)
    return []


def _returned_elements(function: cst.FunctionDef) -> list[Term]:
    reader = Reader()
    for statement in statements_of(function):
        plain, value = assignment(statement), returned(statement)
        if plain:
            reader.definitions[plain[0]] = reader.read(plain[1])
        elif value is not None:
            sequence = reader.read(value)
            return list(sequence.args) if sequence.head == "sequence" else []
    return []


def _learn(known: dict[str, Value], name: str, term: Term, scope: dict[str, Value]) -> None:
    value = _value(term, scope)
    if value is not None:
        known[name] = value


def _value(term: Term, scope: dict[str, Value]) -> Value | None:
    if not term.args and term.number is None:
        return scope.get(term.head)
    try:
        value = infer(term, lambda arg: _value(arg, scope))
    except _MISSING_ARGUMENT:
        return None
    return value or _folded(term, scope)


def _folded(term: Term, scope: dict[str, Value]) -> Value | None:
    """The value of arithmetic on numbers that have names, such as 2 * features."""
    numbers = [value.number if (value := _value(arg, scope)) else None for arg in term.args]
    if term.head not in ("add", "mul", "pow", "floordiv") or any(each is None for each in numbers):
        return None
    result: float | int = numbers[0]  # type: ignore[assignment]
    for each in numbers[1:]:
        assert each is not None
        match term.head:
            case "add":
                result += each
            case "mul":
                result *= each
            case "pow":
                result **= each
            case "floordiv":
                result //= each
    return Value((), "integer" if isinstance(result, int) else "float", result)


class _ExpressionVisitor(cst.CSTVisitor):
    """Hands the outermost expressions of a statement to the reader; targets of assignments are none."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.BaseExpression):
            self.reader.read(node)
            return False
        return not isinstance(node, cst.AssignTarget | cst.Parameters)
