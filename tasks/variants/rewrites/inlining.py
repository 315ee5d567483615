"""A program whose forward holds what it called: helper functions, methods, modules of classes of the same file.

Changes nothing that is computed. Rewrites read one forward only; this puts more of a user's program before them. It is
no Rewrite itself, since alone it makes nothing faster.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import libcst as cst

from tasks.variants.names import names_bound_in, substituted, walk
from tasks.variants.rewrites.evaluation import in_evaluation
from tasks.variants.rewrites.forward import assigned, find_method, returned, statements_of, with_statements
from tasks.variants.rewrites.reading import code_of, dotted_name
from tasks.variants.rewriting import ENTRY
from tasks.variants.text import text_of

MOST_CALLS = 60
_DEFERRED = (cst.Lambda, cst.GeneratorExp, cst.ListComp, cst.SetComp, cst.DictComp, cst.IfExp, cst.BooleanOperation)


@dataclass(frozen=True, slots=True)
class _Callee:
    """A function whose body can stand where it is called."""

    parameters: tuple[str, ...]
    defaults: Mapping[str, cst.BaseExpression]
    statements: tuple[cst.SimpleStatementLine, ...]
    result: cst.BaseExpression
    self_text: str | None
    """What `self` is where the call stands; None in plain functions."""


def inlined(program: cst.Module) -> cst.Module:
    """The program with every call of its forward replaced that can be, those within what was put in included.

    Its other classes keep their text: a drop-in has its parts made of the classes of the user's file.
    """
    others = {each.name.value: each for each in program.body if isinstance(each, cst.ClassDef)}
    others.pop(ENTRY, None)
    if "self.eval()" in text_of(program):
        program = in_evaluation(program)
    for _ in range(MOST_CALLS):
        changed = _one_inlined(program)
        if changed is None:
            break
        program = changed
    body = [others.get(each.name.value, each) if isinstance(each, cst.ClassDef) else each for each in program.body]
    return program.with_changes(body=body)


def _one_inlined(program: cst.Module) -> cst.Module | None:
    forward = find_method(program, "forward")
    if forward is None:
        return None
    find = _finder(program)
    statements: list[cst.CSTNode] = list(statements_of(forward))
    taken = {name for node in walk(forward) if isinstance(node, cst.Name) for name in [node.value]}
    for place, statement in enumerate(statements):
        if not isinstance(statement, cst.SimpleStatementLine) or not _is_plain(statement):
            continue
        for call in _calls(statement):
            callee = find(call)
            put_in = _put_in(call, callee, taken) if callee else None
            if put_in is not None:
                before, result = put_in
                rest = statement.deep_replace(call, result)
                return with_statements(program, forward, [*statements[:place], *before, rest, *statements[place + 1 :]])
    return None


def _calls(statement: cst.CSTNode) -> list[cst.Call]:
    """Calls that happen whenever the statement does, inner ones first."""
    found: list[cst.Call] = []

    def visit(node: cst.CSTNode) -> None:
        if isinstance(node, _DEFERRED):
            return
        for child in node.children:
            visit(child)
        if isinstance(node, cst.Call):
            found.append(node)

    visit(statement)
    return found


def _finder(program: cst.Module) -> Callable[[cst.Call], _Callee | None]:
    """What a call in ModelNew.forward calls, where it can be put in."""
    functions = {node.name.value: node for node in program.body if isinstance(node, cst.FunctionDef)}
    classes = {node.name.value: node for node in program.body if isinstance(node, cst.ClassDef)}
    kinds = _kinds_of_modules(classes, "ModelNew", "self")

    def find(call: cst.Call) -> _Callee | None:
        name = dotted_name(call.func) or ""
        if name in functions:
            return _callee(functions[name], self_text=None)
        if name in kinds:
            method = _method(classes[kinds[name]], "forward")
            return _callee(method, self_text=name) if method else None
        owner, _, attribute = name.rpartition(".")
        kind = "ModelNew" if owner == "self" else kinds.get(owner)
        method = _method(classes[kind], attribute) if kind in classes else None
        return _callee(method, self_text=owner) if method else None

    return find


def _kinds_of_modules(classes: Mapping[str, cst.ClassDef], kind: str, prefix: str, depth: int = 4) -> dict[str, str]:
    """Names of the file's own classes by the attribute that holds an object of them, such as "self.block.norm"."""
    found: dict[str, str] = {}
    init = _method(classes[kind], "__init__") if kind in classes and depth else None
    for node in walk(init) if init else ():
        match node:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name("self"), attr=cst.Name(value=name)))],
                value=cst.Call(func=cst.Name(value=made)),
            ) if made in classes:
                found[f"{prefix}.{name}"] = made
                found |= _kinds_of_modules(classes, made, f"{prefix}.{name}", depth - 1)
    return found


def _method(owner: cst.ClassDef, name: str) -> cst.FunctionDef | None:
    for statement in owner.body.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value == name:
            return statement
    return None


def _callee(function: cst.FunctionDef, *, self_text: str | None) -> _Callee | None:
    """The function, where it is nothing but assignments and a return at its end."""
    decorators = [code_of(each.decorator) for each in function.decorators]
    parameters = function.params
    if decorators not in ([], ["staticmethod"]) or not isinstance(function.body, cst.IndentedBlock):
        return None
    if isinstance(parameters.star_arg, cst.Param) or parameters.star_kwarg or function.asynchronous:
        return None
    *before, last = [each for each in statements_of(function) if not _is_docstring(each)]
    result = returned(last)
    if result is None or not all(isinstance(each, cst.SimpleStatementLine) and _is_plain(each) for each in before):
        return None
    every = [*parameters.posonly_params, *parameters.params, *parameters.kwonly_params]
    names = [parameter.name.value for parameter in every]
    if self_text is not None and decorators == []:
        names = names[1:]
    elif self_text is not None:
        self_text = None
    return _Callee(
        parameters=tuple(names),
        defaults={each.name.value: each.default for each in every if each.default is not None},
        statements=tuple(each for each in before if isinstance(each, cst.SimpleStatementLine)),
        result=result,
        self_text=self_text,
    )


def _is_docstring(statement: cst.CSTNode) -> bool:
    match statement:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString())]):
            return True
    return False


def _is_plain(statement: cst.SimpleStatementLine) -> bool:
    """Whether it assigns to names, or returns a value."""
    match statement.body:
        case [cst.Return(value=cst.BaseExpression())]:
            return True
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Name())])]:
            return True
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=elements))])]:
            return all(isinstance(element.value, cst.Name) for element in elements)
    return False


def _put_in(
    call: cst.Call, callee: _Callee, taken: set[str]
) -> tuple[list[cst.SimpleStatementLine], cst.BaseExpression] | None:
    """Statements that compute what the call computes, and the expression that holds the result."""
    values = _bound(call, callee)
    if values is None:
        return None
    written = names_bound_in(callee.statements)
    new_names = {name: _fresh(name, taken) for name in sorted(written | set(values))}
    replaced = {name: value for name, value in values.items() if name not in written and _is_simple(value)}
    before = [assigned(new_names[name], value) for name, value in values.items() if name not in replaced]
    if callee.self_text is not None:
        replaced["self"] = cst.parse_expression(callee.self_text)
    here = _Replacer({new_names.get(name, name): value for name, value in replaced.items()})
    for statement in callee.statements:
        line = substituted(statement, new_names).visit(here)
        assert isinstance(line, cst.SimpleStatementLine)
        before.append(line)
    name = _fresh("value", taken)
    result = substituted(callee.result, new_names).visit(here)
    assert isinstance(result, cst.BaseExpression)
    return [*before, assigned(name, result)], cst.Name(name)


def _bound(call: cst.Call, callee: _Callee) -> dict[str, cst.BaseExpression] | None:
    """The value of every parameter, or None where the call does not simply give them."""
    if any(argument.star for argument in call.args):
        return None
    positional = [argument.value for argument in call.args if argument.keyword is None]
    named = {argument.keyword.value: argument.value for argument in call.args if argument.keyword is not None}
    if len(positional) > len(callee.parameters) or not named.keys() <= set(callee.parameters):
        return None
    values = {**callee.defaults, **dict(zip(callee.parameters, positional, strict=False)), **named}
    return values if set(values) == set(callee.parameters) else None


def _is_simple(value: cst.BaseExpression) -> bool:
    """Whether reading it several times costs nothing and nothing between can change it."""
    return isinstance(value, cst.Name | cst.Integer | cst.Float) or (dotted_name(value) or "").startswith("self.")


def _fresh(wish: str, taken: set[str]) -> str:
    name, number = wish, 2
    while name in taken:
        name, number = f"{wish}_{number}", number + 1
    taken.add(name)
    return name


class _Replacer(cst.CSTTransformer):
    """Puts expressions where names are read."""

    def __init__(self, replaced: Mapping[str, cst.BaseExpression]) -> None:
        self.replaced = replaced

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self.replaced.get(original_node.value, updated_node)
