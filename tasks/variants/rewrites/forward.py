"""The forward function of a program, with every temporary assigned once while it is being rewritten.

Where each name has one definition, a definition may be read at any later place, so a pattern can span statements.
`single_assignment` gives repeatedly assigned names a version each; `reused_names` turns the versions back.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import libcst as cst

from tasks.variants.names import defined_names, substituted, used_names

_VERSION = "__"
_WRITING_METHOD = re.compile(r"[a-z].*[^_]_")
_LIST_METHODS = ("append", "extend", "insert", "pop")


def find_class(program: cst.Module, name: str = "ModelNew") -> cst.ClassDef | None:
    for statement in program.body:
        if isinstance(statement, cst.ClassDef) and statement.name.value == name:
            return statement
    return None


def find_method(program: cst.Module, name: str) -> cst.FunctionDef | None:
    """A method of ModelNew, or None where it has none by that name with an ordinary body."""
    model = find_class(program)
    for statement in model.body.body if model else ():
        if isinstance(statement, cst.FunctionDef) and statement.name.value == name:
            return statement if isinstance(statement.body, cst.IndentedBlock) else None
    return None


def statements_of(function: cst.FunctionDef) -> list[cst.BaseStatement]:
    assert isinstance(function.body, cst.IndentedBlock)
    return list(function.body.body)


def parameters_of(function: cst.FunctionDef) -> list[str]:
    """Names of the parameters without self."""
    return [parameter.name.value for parameter in function.params.params][1:]


def with_statements(
    program: cst.Module, function: cst.FunctionDef, statements: Sequence[cst.CSTNode]
) -> cst.Module:
    """The program with the body of one function replaced."""
    body = function.body.with_changes(body=list(statements))
    changed = program.deep_replace(function, function.with_changes(body=body))
    assert isinstance(changed, cst.Module)
    return changed


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
    return [*cst.parse_module(text).body]  # type: ignore[list-item]


def is_compound(statement: cst.CSTNode) -> bool:
    return not isinstance(statement, cst.SimpleStatementLine)


def writes_in_place(node: cst.CSTNode) -> bool:
    """Whether a statement may change the contents of a tensor: `x += 1`, `x[0] = 1`, `x.add_(1)`, `out=x`."""
    visitor = _WriteFinder()
    node.visit(visitor)
    return visitor.found


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


def names_left_alone(function: cst.FunctionDef) -> set[str]:
    """Names that are assigned other than by a plain statement at the top of the function, and lists that grow."""
    visitor = _WriteFinder()
    function.visit(visitor)
    fixed = set(visitor.lists)
    for statement in statements_of(function):
        if assignment(statement) is None:
            fixed |= defined_names(statement) | _names_of_nested(statement)
    return fixed


def reused_names(program: cst.Module) -> cst.Module:
    """Undo `single_assignment`: a version takes its old name again as soon as that name is no longer read."""
    function = find_method(program, "forward")
    assert function is not None
    statements = statements_of(function)
    last_use = {name: place for place, statement in enumerate(statements) for name in used_names(statement)}
    current: dict[str, str] = {}
    holder: dict[str, str] = {name: name for name in parameters_of(function)}
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
        kept = [s for s in statements if not _is_dead(s, reads=reads, candidates=candidates)]
        if len(kept) == len(statements):
            return with_statements(program, function, kept)
        for statement in set(statements) - set(kept):
            candidates.update(used_names(statement))
        statements = kept


def read_counts(statements: Sequence[cst.CSTNode]) -> Counter[str]:
    """How often each name is read; a plain assignment's own target is not a read."""
    reads: Counter[str] = Counter()
    for statement in statements:
        name_and_value = assignment(statement)
        reads.update(used_names(name_and_value[1] if name_and_value else statement))
    return reads


def fresh_name(program: cst.Module, wish: str) -> str:
    function = find_method(program, "forward")
    taken = set(used_names(function)) if function else set()
    taken |= {name.split(_VERSION)[0] for name in taken}
    name, number = wish, 1
    while name in taken:
        number += 1
        name = f"{wish}{number}"
    return name


def _is_dead(statement: cst.CSTNode, *, reads: Mapping[str, int], candidates: set[str]) -> bool:
    name_and_value = assignment(statement)
    if name_and_value is None:
        return False
    name, value = name_and_value
    return name in candidates and not reads.get(name) and not writes_in_place(value)


def _names_of_nested(statement: cst.CSTNode) -> set[str]:
    """Names a nested function reads: when it runs, and so what it sees, is not known here."""
    return set(used_names(statement)) if isinstance(statement, cst.FunctionDef) else set()


class _WriteFinder(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found = False
        self.lists: set[str] = set()

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self.found = True

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        if not isinstance(node.target, cst.Name | cst.Tuple):
            self.found = True

    def visit_Call(self, node: cst.Call) -> None:
        match node.func:
            case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value=method)) if method in _LIST_METHODS:
                self.lists.add(name)
            case cst.Attribute(attr=cst.Name(value=method)) if _WRITING_METHOD.fullmatch(method):
                self.found = True
        if any(argument.keyword and argument.keyword.value == "out" for argument in node.args):
            self.found = True
