"""Algebra: what a loop computes from slices is computed for all of them before the loop."""

import random
from collections.abc import Mapping, Sequence, Set

import libcst as cst

from tasks.variants.names import walk
from tasks.variants.rewrites.blocks import assigned_names
from tasks.variants.rewrites.forward import (
    assigned,
    fresh_name,
    reused_names,
    statements_of,
    with_statements,
    writes_in_place,
)
from tasks.variants.rewrites.reading import Reader, code_of
from tasks.variants.rewrites.shapes import ENTRYWISE
from tasks.variants.rewrites.slices import is_slice, without_slices
from tasks.variants.rewrites.terms import Term, leaf
from tasks.variants.rewrites.view import View, view_of
from tasks.variants.rewriting import rewrite


@rewrite("algebra")
def hoist_out_of_loop(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """What a loop computes from x[:, t] alone is computed for all t before it. Assumes layers or entrywise steps."""
    view = view_of(program)
    if view is None:
        return None
    loops = [(statement, nodes) for statement in statements_of(view.forward) if (nodes := _hoistable(statement, view))]
    if not loops:
        return None
    loop, nodes = rng.choice(loops)
    return _hoisted(view, loop, nodes)


def _hoisted(view: View, loop: cst.BaseStatement, nodes: Sequence[cst.BaseExpression]) -> cst.Module:
    """The program with expressions computed before the loop and sliced inside of it."""
    assert isinstance(loop, cst.For)
    time = code_of(loop.target)
    names = [fresh_name("ahead", place) for place, _ in enumerate(nodes)]
    moments = {node: cst.parse_expression(f"{name}[:, {time}]") for name, node in zip(names, nodes, strict=True)}
    inside = loop.visit(_Exchanger(moments))
    assert isinstance(inside, cst.For)
    before = [assigned(name, without_slices(node, time)) for name, node in zip(names, nodes, strict=True)]
    statements = statements_of(view.forward)
    place = statements.index(loop)
    statements[place : place + 1] = [*before, inside]
    return reused_names(with_statements(view.program, view.forward, statements))


def _hoistable(statement: cst.CSTNode, view: View) -> list[cst.BaseExpression]:
    """Largest expressions of a loop that need nothing but slices at its own time."""
    if not isinstance(statement, cst.For) or not isinstance(statement.target, cst.Name):
        return []
    if any(writes_in_place(each) for each in _operations(statement.body)):
        return []
    reader = Reader(modules=view.modules, rank_of=view.rank)
    changing = leaf(statement.target.value), assigned_names(statement)
    found: list[cst.BaseExpression] = []
    for node in _operations(statement.body):
        if not any(node in _operations(larger) for larger in found) and _needs_slices_only(
            reader.read(node), *changing, view
        ):
            found.append(node)
    return found


def _operations(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """Expressions that compute something, outer ones first."""
    return [each for each in walk(node) if isinstance(each, cst.Call | cst.BinaryOperation)]


def _needs_slices_only(term: Term, time: Term, changing: Set[str], view: View) -> bool:
    parts = list(term.subterms())
    if not {each.head for each in parts} & (ENTRYWISE | {"linear"}):
        return False
    # A vector or a layer acts along the last dimension, which a slice of a matrix has lost.
    ranks_needed = (
        {3} if any(each.head == "linear" or (not each.args and view.rank(each) == 1) for each in parts) else {2, 3}
    )
    slices = {view.rank(each.args[0]) for each in parts if is_slice(each, time)}
    return slices <= ranks_needed and _is_momentary(term, time, changing, view) == "slice"


def _is_momentary(term: Term, time: Term, changing: Set[str], view: View) -> str | None:
    """ "slice" for what varies with time through slices only, "constant" for a number or a weight, else None."""
    if is_slice(term, time):
        return None if term.args[0].args or term.args[0].head in changing else "slice"
    value = view.value(term)
    if value is not None and (value.number is not None or value.rank <= 1) and not _changes(term, time, changing):
        return "constant"
    if term.head not in ENTRYWISE | {"linear"}:
        return None
    varying = term.args[:1] if term.head == "linear" else term.args
    if any(_changes(arg, time, changing) for arg in term.args[len(varying) :]):
        return None
    kinds = [_is_momentary(arg, time, changing, view) for arg in varying]
    return None if not kinds or None in kinds else "slice"


def _changes(term: Term, time: Term, changing: Set[str]) -> bool:
    """Whether a term is another one at another time; the last size of a slice is not."""
    if term.head == "size" and is_slice(term.args[0], time) and term.args[1].number == -1:
        return False
    return term == time or term.head in changing or any(_changes(arg, time, changing) for arg in term.args)


class _Exchanger(cst.CSTTransformer):
    def __init__(self, moments: Mapping[cst.BaseExpression, cst.BaseExpression]) -> None:
        self.moments = moments

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        if isinstance(original_node, cst.BaseExpression) and original_node in self.moments:
            return self.moments[original_node]
        return updated_node
