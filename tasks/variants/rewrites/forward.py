"""The forward function of a program, with every temporary assigned once while it is being rewritten.

Where each name has one definition, a definition may be read at any later place, so a pattern can span statements.
`single_assignment` gives repeatedly assigned names a version each; `reused_names` turns the versions back.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

import libcst as cst

from tasks.variants.layout import KNOWN_IMPORTS
from tasks.variants.names import defined_names, names_bound_in, substituted, used_names, walk

_VERSION = "__"
_WRITING_METHOD = re.compile(r"[a-z].*[^_]_")
_LIST_METHODS = ("append", "extend", "insert", "pop")


def find_class(program: cst.Module, name: str = "ModelNew") -> cst.ClassDef | None:
    for statement in program.body:
        if isinstance(statement, cst.ClassDef) and statement.name.value == name:
            return statement
    return None


def find_method(program: cst.Module, name: str, *, of: str = "ModelNew") -> cst.FunctionDef | None:
    """A method of a class, or None where it has none by that name with an ordinary body."""
    model = find_class(program, of)
    for statement in model.body.body if model else ():
        if isinstance(statement, cst.FunctionDef) and statement.name.value == name:
            return statement if isinstance(statement.body, cst.IndentedBlock) else None
    return None


def statements_of(function: cst.FunctionDef) -> list[cst.BaseStatement]:
    assert isinstance(function.body, cst.IndentedBlock)
    return list(function.body.body)


def positional_parameters_of(function: cst.FunctionDef) -> list[str]:
    """Names of the parameters that may be given by position, without self."""
    parameters = [*function.params.posonly_params, *function.params.params]
    return [parameter.name.value for parameter in parameters][1:]


def parameters_of(function: cst.FunctionDef) -> list[str]:
    """Names of all parameters without self."""
    parameters = function.params
    others = [parameters.star_arg, *parameters.kwonly_params, parameters.star_kwarg]
    named = [each.name.value for each in others if isinstance(each, cst.Param)]
    return [*positional_parameters_of(function), *named]


def with_statements(program: cst.Module, function: cst.FunctionDef, statements: Sequence[cst.CSTNode]) -> cst.Module:
    """The program with the body of one function replaced."""
    changed = function.with_changes(body=function.body.with_changes(body=list(statements)))
    model = find_class(program)
    assert model is not None
    methods = [changed if each is function else each for each in model.body.body]
    new_model = model.with_changes(body=model.body.with_changes(body=methods))
    return program.with_changes(body=[new_model if each is model else each for each in program.body])


def assignment(statement: cst.CSTNode) -> tuple[str, cst.BaseExpression] | None:
    """Name and value of `name = value`; None for every other statement."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as one]):
            return name, one.value
    return None


def assigned(name: str, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], value)])


def returned(statement: cst.CSTNode) -> cst.BaseExpression | None:
    match statement:
        case cst.SimpleStatementLine(body=[cst.Return(value=value)]):
            return value
    return None


def parse_statements(text: str) -> list[cst.BaseStatement]:
    return [*cst.parse_module(text).body]


def shadows_imports(function: cst.FunctionDef) -> bool:
    """Whether something of its own, but no import, is called like a module that a replacement may name."""
    others = [each for each in statements_of(function) if not _imports(each)]
    return not {*parameters_of(function), *names_bound_in(others)}.isdisjoint(KNOWN_IMPORTS)


def _imports(statement: cst.CSTNode) -> bool:
    match statement:
        case cst.SimpleStatementLine(body=[cst.Import() | cst.ImportFrom()]):
            return True
    return False


def is_compound(statement: cst.CSTNode) -> bool:
    return not isinstance(statement, cst.SimpleStatementLine)


@lru_cache(maxsize=2048)
def writes_in_place(node: cst.CSTNode) -> bool:
    """Whether a statement may change the contents of a tensor: `x += 1`, `x[0] = 1`, `x.add_(1)`, `out=x`."""
    return any(_writes(each) for each in walk(node))


@lru_cache(maxsize=2048)
def grown_lists(node: cst.CSTNode) -> frozenset[str]:
    """Names of lists that a node appends to."""
    lists = set()
    for each in walk(node):
        match each:
            case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value=method))):
                if method in _LIST_METHODS:
                    lists.add(name)
    return frozenset(lists)


def single_assignment(program: cst.Module) -> cst.Module | None:
    """The program with each temporary of forward assigned once, outside of loops and branches."""
    function = find_method(program, "forward")
    if function is None:
        return None
    fixed = names_left_alone(function)
    current = {name: name for name in parameters_of(function)}
    taken, statements = Counter(current.keys()), []
    for statement in statements_of(function):
        name_and_value = assignment(statement)
        if name_and_value is None or name_and_value[0] in fixed:
            statements.append(substituted(statement, current))
            continue
        name, value = name_and_value
        version = name if not taken[name] else f"{name}{_VERSION}{taken[name]}"
        taken[name] += 1
        statements.append(assigned(version, substituted(value, current)))
        current[name] = version
    return with_statements(program, function, statements)


@lru_cache(maxsize=256)
def names_left_alone(function: cst.FunctionDef) -> frozenset[str]:
    """Names that are assigned other than by a plain statement at the top of the function, and lists that grow."""
    fixed = set(grown_lists(function))
    for statement in statements_of(function):
        if assignment(statement) is None:
            fixed |= defined_names(statement) | _names_of_nested(statement)
    return frozenset(fixed)


def reused_names(program: cst.Module) -> cst.Module:
    """Undo `single_assignment`: a version takes its old name again as soon as that name is no longer read."""
    function = find_method(program, "forward")
    assert function is not None
    statements = statements_of(function)
    last_use = {name: place for place, statement in enumerate(statements) for name in used_names(statement)}
    current: dict[str, str] = {}
    inner = set().union(*(defined_names(statement) for statement in statements if is_compound(statement)))
    holder: dict[str, str] = {name: name for name in (*parameters_of(function), *inner)}
    result: list[cst.CSTNode] = []
    for place, statement in enumerate(statements):
        name_and_value = assignment(statement)
        if name_and_value is None:
            result.append(substituted(statement, current))
            continue
        version, value = name_and_value
        plain = version.split(_VERSION)[0]
        number = 1
        name = plain
        while name in holder and holder[name] != version and last_use.get(holder[name], -1) > place:
            number += 1
            name = f"{plain}{number}"
        holder[name] = version
        result.append(assigned(name, substituted(value, current)))
        current[version] = name
    return with_statements(program, function, result)


def without_dead_temporaries(program: cst.Module, *, only: set[str]) -> cst.Module:
    """Drop assignments to those of the names `only` that nothing reads, and then what only they read."""
    function = find_method(program, "forward")
    assert function is not None
    statements: list[cst.CSTNode] = list(statements_of(function))
    candidates = set(only)
    while True:
        reads = read_counts(statements)
        kept = [_without_dead(s, reads=reads, candidates=candidates) for s in statements]
        remaining = [statement for statement in kept if statement is not None]
        if remaining == statements:
            return with_statements(program, function, remaining)
        candidates.update(reads)
        statements = remaining


def read_counts(statements: Sequence[cst.CSTNode]) -> Counter[str]:
    """How often each name is read; a plain assignment's own target is not a read."""
    reads: Counter[str] = Counter()
    for statement in statements:
        name_and_value = assignment(statement)
        if isinstance(statement, cst.For) and isinstance(statement.body, cst.IndentedBlock):
            reads.update(used_names(statement.target) + used_names(statement.iter))
            reads.update(read_counts(statement.body.body))
        else:
            reads.update(used_names(name_and_value[1] if name_and_value else statement))
    return reads


def fresh_name(wish: str, number: int = 0) -> str:
    """A name that no program has; `reused_names` turns it into the wish, or into one like it that is free."""
    return f"{wish}{_VERSION}new{number}"


def _without_dead(statement: cst.CSTNode, *, reads: Mapping[str, int], candidates: set[str]) -> cst.CSTNode | None:
    """The statement, a loop without what is dead in its body, or None for what is dead itself."""
    if isinstance(statement, cst.For) and isinstance(statement.body, cst.IndentedBlock):
        inner = [_without_dead(each, reads=reads, candidates=candidates) for each in statement.body.body]
        kept = [each for each in inner if each is not None]
        if not kept or kept == list(statement.body.body):
            return statement
        return statement.with_changes(body=statement.body.with_changes(body=kept))
    name_and_value = assignment(statement)
    if name_and_value is None:
        return statement
    name, value = name_and_value
    is_dead = name in candidates and not reads.get(name) and not writes_in_place(value)
    return None if is_dead else statement


def _names_of_nested(statement: cst.CSTNode) -> set[str]:
    """Names a nested function reads: when it runs, and so what it sees, is not known here."""
    return set(used_names(statement)) if isinstance(statement, cst.FunctionDef) else set()


def _writes(node: cst.CSTNode) -> bool:
    match node:
        case cst.AugAssign():
            return True
        case cst.AssignTarget(target=target):
            return not isinstance(target, cst.Name | cst.Tuple)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=method))) if _WRITING_METHOD.fullmatch(method):
            return True
        case cst.Call(args=arguments):
            return any(argument.keyword and argument.keyword.value == "out" for argument in arguments)
    return False
