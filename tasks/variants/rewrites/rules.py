"""Rules: a pattern, written as the expression it finds, and what it becomes, written as the text that replaces it."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from textwrap import dedent

import libcst as cst

from tasks.variants.layout import parenthesised
from tasks.variants.names import defined_names, names_bound_in, substituted, walk
from tasks.variants.rewrites.forward import (
    assigned,
    assignment,
    find_method,
    fresh_name,
    is_compound,
    reused_names,
    statements_of,
    with_statements,
    without_dead_temporaries,
)
from tasks.variants.rewrites.matching import NOTHING, Match, unify
from tasks.variants.rewrites.reading import Reader
from tasks.variants.rewrites.terms import Term, expression_of, product, total
from tasks.variants.rewrites.view import View, view_of

# Repeating these costs next to nothing, so a replacement may look into them although others still read them.
_FREE = ("mT", "transpose", "reshape", "index", "size", "unsqueeze", "expand_as", "cat")

Condition = Callable[[Match], bool]
Given = Callable[[Match], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Rule:
    """Wherever `pattern` computes something and `when` holds, `replacement` computes the same."""

    pattern: Term
    replacement: str
    """An expression; lines before the last one are statements that it needs."""
    when: Condition
    given: Given
    """Texts for holes of the replacement that the pattern does not have."""

    def matches(self, site: Term, view: View) -> Iterator[Match]:
        if isinstance(site.node, cst.Name):
            return  # what a name holds is a place of its own
        for holes, through, rest in unify(self.pattern, site, may_split=True):
            match = Match(site, holes, through, view, rest)
            if self.when(match):
                yield match


def always(match: Match) -> bool:
    return True


def nothing(match: Match) -> dict[str, str]:
    return {}


@cache
def rule(pattern: str, replacement: str, *, when: Condition = always, given: Given = nothing) -> Rule:
    return Rule(Reader().read(cst.parse_expression(pattern)), dedent(replacement).strip(), when, given)


def replace_one(program: cst.Module, rng: random.Random, rules: Sequence[Rule]) -> cst.Module | None:
    """The program with one place rewritten, by the first rule that matches anywhere, in the place that rng picks.

    Returns:
        None where no rule matches.
    """
    view = view_of(program)
    if view is None:
        return None
    for each in rules:
        matches = [match for site in view.sites for match in each.matches(site, view)]
        for match in rng.sample(matches, len(matches)):
            changed = _replaced(view, each, match)
            if changed is not None:
                return changed
    return None


def replace_all(program: cst.Module, rng: random.Random, rules: Sequence[Rule]) -> cst.Module | None:
    """The program with every place rewritten, one after the other; for rules that leave nothing they match."""
    changed = replace_one(program, rng, rules)
    while changed is not None:
        program, changed = changed, replace_one(changed, rng, rules)
        if changed is None:
            return program
    return None


def fill(text: str, holes: Mapping[str, Term]) -> list[cst.BaseStatement]:
    """Statements from a text, with every hole replaced by the expression it stands for."""
    module = cst.parse_module(dedent(text).strip() + "\n").visit(_Filler(holes))
    assert isinstance(module, cst.Module)
    return list(module.body)


def _replaced(view: View, each: Rule, match: Match) -> cst.Module | None:
    """The program with the replacement in the place of a match, or None if that would compute something twice."""
    given = {name: Term("given", node=cst.parse_expression(text)) for name, text in each.given(match).items()}
    *before, last = fill(each.replacement, {**match.holes, **given})
    before, last = _with_fresh_names(before, last)
    site = match.site.node
    assert site is not None
    place = _statement_holding(view.forward, site)
    if place is None or (before and is_compound(place)):
        return None
    target = assignment(place)
    if target and target[1] is site and before and not match.rest:
        program = _with_assigned(view, place, target[0], before, last)
    else:
        replaced = view.program.deep_replace(site, parenthesised(_combined(last, match)))
        assert isinstance(replaced, cst.Module)
        program = _with_statements_at(replaced, statements_of(view.forward).index(place), before)
    looked_into = {name for name in match.through if view.definitions[name].head not in _FREE}
    program = without_dead_temporaries(program, only=set(view.reads))
    if looked_into & _temporaries(program):
        return None
    return reused_names(program)


def _combined(last: cst.BaseStatement, match: Match) -> cst.BaseExpression:
    """The replacement's expression, joined with what it was a part of."""
    expression = _expression(last)
    if not match.rest:
        return expression
    combine = total if match.site.head == "add" else product
    return expression_of(combine([Term("replaced", node=expression), *match.rest], inlinable=NOTHING))


def _expression(statement: cst.BaseStatement) -> cst.BaseExpression:
    match statement:
        case cst.SimpleStatementLine(body=[cst.Expr(value=expression)]):
            return expression
    raise ValueError("a replacement must end in an expression")


def _with_assigned(
    view: View, place: cst.BaseStatement, target: str, before: Sequence[cst.BaseStatement], last: cst.BaseStatement
) -> cst.Module:
    """An assignment replaced by statements; where their result has a name of its own, it takes the target's."""
    statements = statements_of(view.forward)
    added = [*before, assigned(target, _expression(last))]
    match _expression(last):
        case cst.Name(value=name):
            added = [substituted(statement, {name: target}) for statement in before]
    index = statements.index(place)
    return with_statements(view.program, view.forward, [*statements[:index], *added, *statements[index + 1 :]])


def _with_fresh_names(
    before: Sequence[cst.BaseStatement], last: cst.BaseStatement
) -> tuple[list[cst.BaseStatement], cst.BaseStatement]:
    fresh = {name: fresh_name(name) for name in sorted(names_bound_in(before))}
    return [substituted(statement, fresh) for statement in before], substituted(last, fresh)


def _statement_holding(function: cst.FunctionDef, node: cst.CSTNode) -> cst.BaseStatement | None:
    for statement in statements_of(function):
        if any(each is node for each in walk(statement)):
            return statement
    return None


def _with_statements_at(program: cst.Module, place: int, added: Sequence[cst.BaseStatement]) -> cst.Module:
    if not added:
        return program
    function = find_method(program, "forward")
    assert function is not None
    statements = statements_of(function)
    return with_statements(program, function, [*statements[:place], *added, *statements[place:]])


def _temporaries(program: cst.Module) -> frozenset[str]:
    function = find_method(program, "forward")
    return defined_names(function.body) if function else frozenset()


class _Filler(cst.CSTTransformer):
    def __init__(self, holes: Mapping[str, Term]) -> None:
        self.holes = holes

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        held = self.holes.get(original_node.value)
        return updated_node if held is None else parenthesised(expression_of(held).deep_clone())
