"""Rules for statements: a pattern of consecutive ones, such as a loop and what surrounds it, and what they become."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from textwrap import dedent

import libcst as cst

from tasks.variants.names import defined_names, substituted, used_names
from tasks.variants.rewrites.forward import assignment, fresh_name, reused_names, statements_of, with_statements
from tasks.variants.rewrites.matching import Match, unify
from tasks.variants.rewrites.reading import Reader, code_of
from tasks.variants.rewrites.rules import Condition, Given, always, fill, nothing
from tasks.variants.rewrites.terms import Term, leaf
from tasks.variants.rewrites.view import View, view_of


@dataclass(frozen=True, slots=True)
class BlockRule:
    """Wherever consecutive statements do what `pattern` does and `when` holds, `replacement` does the same."""

    pattern: Term
    replacement: str
    when: Condition
    given: Given
    """Texts for holes of the replacement that the pattern does not have."""

    def matches(self, view: View) -> Iterator[tuple[int, Match]]:
        """Matches with the place of their first statement."""
        reader = Reader(modules=view.modules, rank_of=view.rank)
        terms = [statement_term(statement, reader) for statement in statements_of(view.forward)]
        length = len(self.pattern.args)
        for place in range(len(terms) - length + 1):
            site = Term("block", tuple(terms[place : place + length]))
            for holes, through, _ in unify(self.pattern, site):
                match = Match(site, holes, through, view)
                if self.when(match):
                    yield place, match


@cache
def block_rule(pattern: str, replacement: str, *, when: Condition = always, given: Given = nothing) -> BlockRule:
    body = cst.parse_module(dedent(pattern).strip() + "\n").body
    return BlockRule(
        Term("block", tuple(statement_term(statement, Reader()) for statement in body)), replacement, when, given
    )


def replace_block(program: cst.Module, rng: random.Random, rules: Sequence[BlockRule]) -> cst.Module | None:
    """The program with one block rewritten, by the first rule that matches anywhere, in the place that rng picks."""
    view = view_of(program)
    if view is None:
        return None
    for each in rules:
        matches = list(each.matches(view))
        for place, match in rng.sample(matches, len(matches)):
            changed = _replaced(view, each, place, match)
            if changed is not None:
                return changed
    return None


def statement_term(statement: cst.CSTNode, reader: Reader) -> Term:
    """A statement as a term, so that patterns of statements are found as patterns of expressions are."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=target)], value=value)]):
            head = "assign" if isinstance(target, cst.Name) else "store"
            return Term(head, (reader.read(target), reader.read(value)))
        case cst.SimpleStatementLine(body=[cst.Expr(value=value)]):
            return Term("do", (reader.read(value),))
        case cst.For(target=target, iter=iterated, body=cst.IndentedBlock(body=body), orelse=None):
            inner = (statement_term(each, reader) for each in body)
            return Term("for", (reader.read(target), reader.read(iterated), *inner))
    return leaf(code_of(statement), node=cst.Name("_"))


def _replaced(view: View, each: BlockRule, place: int, match: Match) -> cst.Module | None:
    """The program with the block replaced, or None if something that the block assigned is still read elsewhere."""
    length = len(each.pattern.args)
    statements = statements_of(view.forward)
    before, block, after = statements[:place], statements[place : place + length], statements[place + length :]
    given = {name: Term("given", node=cst.parse_expression(text)) for name, text in each.given(match).items()}
    own = {name for statement in fill(each.replacement, {}) for name in assigned_names(statement) if name[0] != "_"}
    fresh = {name: fresh_name(name) for name in sorted(own)}
    template = [substituted(statement, fresh) for statement in fill(each.replacement, {})]
    added = fill("".join(map(code_of, template)), {**match.holes, **given})
    lost = set().union(*map(assigned_names, block)) - set().union(*map(assigned_names, added))
    if lost & {name for statement in after for name in used_names(statement)}:
        return None
    return reused_names(with_statements(view.program, view.forward, [*before, *added, *after]))


def assigned_names(statement: cst.CSTNode) -> frozenset[str]:
    """Names that a statement assigns, loop variables included."""
    plain = assignment(statement)
    return frozenset({plain[0]}) if plain else defined_names(statement)
