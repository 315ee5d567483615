"""A program whose forward holds what it called: helper functions, methods, modules of classes of the same file.

Changes nothing that is computed. Rewrites read one forward only; this puts more of a user's program before them. It is
no Rewrite itself, since alone it makes nothing faster.
"""

from collections.abc import Callable, Mapping

import libcst as cst

from tasks.variants.names import exchanged, names_bound_in, substituted, used_names, walk
from tasks.variants.rewrites.callees import Callee, finder, is_plain, may_change
from tasks.variants.rewrites.evaluation import in_evaluation
from tasks.variants.rewrites.forward import assigned, find_method, statements_of, with_statements, writes_in_place
from tasks.variants.rewrites.reading import dotted_name
from tasks.variants.rewriting import ENTRY
from tasks.variants.scopes import given_in
from tasks.variants.text import text_of

MOST_CALLS = 60
_DEFERRED = (cst.Lambda, cst.GeneratorExp, cst.ListComp, cst.SetComp, cst.DictComp, cst.IfExp, cst.BooleanOperation)
# What is read and not computed, so that it does not matter when.
_READ = (cst.Name, cst.Attribute, cst.BaseNumber, cst.BaseString, cst.Tuple, cst.List)


def inlined(program: cst.Module) -> cst.Module:
    """The program with every call of its forward replaced that can be, those within what was put in included.

    Its other classes keep their text: a drop-in has its parts made of the classes of the user's file.
    """
    others = {each.name.value: each for each in program.body if isinstance(each, cst.ClassDef)}
    others.pop(ENTRY, None)
    if "self.eval()" in text_of(program):
        program = in_evaluation(program)
    find = finder(program)
    file_names = names_bound_in(program.body)
    for _ in range(MOST_CALLS):
        changed = _one_inlined(program, find, file_names)
        if changed is None:
            break
        program = changed
    body = [others.get(each.name.value, each) if isinstance(each, cst.ClassDef) else each for each in program.body]
    return program.with_changes(body=body)


def _one_inlined(
    program: cst.Module, find: Callable[[cst.Call], Callee | None], file_names: set[str]
) -> cst.Module | None:
    forward = find_method(program, "forward")
    if forward is None:
        return None
    statements: list[cst.CSTNode] = list(statements_of(forward))
    given = given_in(forward)
    taken = file_names | {node.value for node in walk(forward) if isinstance(node, cst.Name)}
    for place, statement in enumerate(statements):
        if not isinstance(statement, cst.SimpleStatementLine) or not is_plain(statement):
            continue
        for call, earlier in _calls(statement):
            callee = find(call) if dotted_name(call.func) not in given else None
            put_in = _put_in(call, callee, given, taken) if callee else None
            if callee is not None and put_in is not None:
                # What the statement computes before the call goes on to be computed before it, where that matters.
                moved = (each for each in earlier if callee.may_change or may_change(each))
                kept = {each: _fresh("value", taken, callee.names) for each in moved}
                first = [assigned(name, each) for each, name in kept.items()]
                before, result = put_in
                rest = exchanged(statement, {call: result, **{each: cst.Name(name) for each, name in kept.items()}})
                put = [*first, *before, rest]
                return with_statements(program, forward, [*statements[:place], *put, *statements[place + 1 :]])
    return None


def _calls(statement: cst.CSTNode) -> list[tuple[cst.Call, tuple[cst.BaseExpression, ...]]]:
    """Calls that happen whenever the statement does, inner ones first, each with what is computed before it."""
    if any(isinstance(node, cst.NamedExpr) for node in walk(statement)):
        return []
    found: list[tuple[cst.Call, tuple[cst.BaseExpression, ...]]] = []
    computed: list[cst.BaseExpression] = []

    def visit(node: cst.CSTNode) -> bool:
        """Whether nothing in it changes what comes after it."""
        earlier = tuple(computed)
        if not isinstance(node, _DEFERRED) and not all(visit(child) for child in node.children):
            return False
        if isinstance(node, cst.Call):
            found.append((node, earlier))
        if isinstance(node, cst.BaseExpression) and not isinstance(node, _READ):
            computed[:] = [*earlier, node]
        return not isinstance(node, (cst.Call, *_DEFERRED)) or not writes_in_place(node)

    visit(statement)
    return found


def _put_in(
    call: cst.Call, callee: Callee, given: set[str], taken: set[str]
) -> tuple[list[cst.SimpleStatementLine], cst.BaseExpression] | None:
    """Statements that compute what the call computes, and the expression that holds the result.

    None where a name that the callee has from its file would be one that forward gives a value.
    """
    values = _bound(call, callee, given)
    if values is None or callee.read & given:
        return None
    new_names = {name: _fresh(name, taken, callee.names) for name in sorted(callee.stored | set(values))}
    may_be_read_late = not any(may_change(value) for value in values.values())
    replaced = {
        name: value
        for name, value in values.items()
        if name not in callee.stored | callee.read_late
        and _is_simple(value)
        and (may_be_read_late or not isinstance(value, cst.Attribute))
    }
    before = [assigned(new_names[name], value) for name, value in values.items() if name not in replaced]
    if callee.self_text is not None:
        replaced["self"] = cst.parse_expression(callee.self_text)
    here = _Replacer({new_names.get(name, name): value for name, value in replaced.items()})
    for statement in callee.statements:
        line = substituted(statement, new_names).visit(here)
        assert isinstance(line, cst.SimpleStatementLine)
        before.append(line)
    name = _fresh("value", taken, callee.names)
    result = substituted(callee.result, new_names).visit(here)
    assert isinstance(result, cst.BaseExpression)
    return [*before, assigned(name, result)], cst.Name(name)


def _bound(call: cst.Call, callee: Callee, given: set[str]) -> dict[str, cst.BaseExpression] | None:
    """The value of every parameter, or None where the call does not simply give them."""
    if any(argument.star for argument in call.args):
        return None
    positional = [argument.value for argument in call.args if argument.keyword is None]
    named = {argument.keyword.value: argument.value for argument in call.args if argument.keyword is not None}
    if len(positional) > len(callee.parameters) or not named.keys() <= set(callee.parameters):
        return None
    values = {**dict(zip(callee.parameters, positional, strict=False)), **named}
    defaults = {name: value for name, value in callee.defaults.items() if name not in values}
    if any(not given.isdisjoint(used_names(value)) for value in defaults.values()):
        return None
    values |= defaults
    return values if set(values) == set(callee.parameters) else None


def _is_simple(value: cst.BaseExpression) -> bool:
    """Whether reading it several times costs nothing and nothing between can change it."""
    return isinstance(value, cst.Name | cst.Integer | cst.Float) or (dotted_name(value) or "").startswith("self.")


def _fresh(wish: str, taken: set[str], others: frozenset[str]) -> str:
    """The wish, or a name like it that nothing has: neither where it comes to, nor where it comes from."""
    name, number = wish, 2
    while name in taken or (name != wish and name in others):
        name, number = f"{wish}_{number}", number + 1
    taken.add(name)
    return name


class _Replacer(cst.CSTTransformer):
    """Puts expressions where names are read."""

    def __init__(self, replaced: Mapping[str, cst.BaseExpression]) -> None:
        self.replaced = replaced

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        value = updated_node.value
        if isinstance(value, cst.Integer):  # `3.view` is no number, and no attribute
            value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return updated_node.with_changes(value=value, attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self.replaced.get(original_node.value, updated_node)
