"""Algebra of what is computed more often or at a larger size than needed."""

import random
from collections.abc import Iterator

import libcst as cst

from tasks.variants.names import walk, words
from tasks.variants.rewrites.forward import (
    assigned,
    assignment,
    fresh_name,
    is_compound,
    returned,
    reused_names,
    statements_of,
    with_statements,
    writes_in_place,
)
from tasks.variants.rewrites.reading import Reader, code_of
from tasks.variants.rewrites.shapes import ENTRYWISE
from tasks.variants.rewrites.terms import Term
from tasks.variants.rewrites.view import View, view_of
from tasks.variants.rewriting import rewrite

# Taking these twice costs nothing.
_CHEAP = words("index size reshape mT transpose unsqueeze expand_as number sequence float .shape range")
# New memory is asked for twice because it will be written to.
_NEW = words("zeros_like ones_like empty_like new_zeros new_ones new_empty zeros ones empty")
_SHAPED_ALIKE = ENTRYWISE | {"zeros_like", "ones_like", "number"}


@rewrite("algebra")
def share_common_expression(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """What is computed twice is computed once. Assumes nothing: it applies where forward writes in place nowhere."""
    view = view_of(program)
    if view is None or writes_in_place(view.forward):
        return None
    repeated = list(_repeated(view))
    if not repeated:
        return None
    nodes = rng.choice(repeated)
    name = fresh_name("same")
    changed = view.program
    statements = statements_of(view.forward)
    place = min(_place(node, view) for node in nodes)
    exchanger = _Exchanger(set(nodes), name)
    written = [*statements[:place], assigned(name, nodes[0]), *(each.visit(exchanger) for each in statements[place:])]
    return reused_names(
        with_statements(changed, view.forward, [each for each in written if isinstance(each, cst.CSTNode)])
    )


@rewrite("fusion")
def merge_linears(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Linear layers on one input are one product with all their weights. Assumes equal output sizes."""
    view = view_of(program)
    if view is None or writes_in_place(view.forward):  # its parts share memory
        return None
    groups = [group for group in _layers_by_input(view) if len(group) > 1]
    if not groups:
        return None
    group = rng.choice(groups)
    weights = ", ".join(code_of_term(term.args[1]) for _, term in group)
    biases = ", ".join(code_of_term(term.args[2]) for _, term in group if len(term.args) > 2)
    bias = f", torch.cat([{biases}])" if biases else ""
    name = fresh_name("parts")
    given = code_of_term(group[0][1].args[0])
    merged = f"F.linear({given}, torch.cat([{weights}]){bias}).chunk({len(group)}, dim=-1)"
    statements = list(statements_of(view.forward))
    for part, (place, _) in enumerate(group):
        plain = assignment(statements[place])
        assert plain is not None
        statements[place] = assigned(plain[0], cst.parse_expression(f"{name}[{part}]"))
    statements.insert(group[0][0], assigned(name, cst.parse_expression(merged)))
    return reused_names(with_statements(view.program, view.forward, statements))


@rewrite("algebra")
def expand_late(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Entrywise steps are taken before a tensor is expanded. Assumes that each meets the full size before the end."""
    view = view_of(program)
    if view is None:
        return None
    small = _without_expansions(view)
    after = view_of(small) if small else None
    if small is None or after is None or not _means_the_same(view, after):
        return None
    return reused_names(small)


def _without_expansions(view: View) -> cst.Module | None:
    """The program with `name = tensor.expand_as(other)` reduced to the tensor."""
    statements: list[cst.BaseStatement] = []
    for statement in statements_of(view.forward):
        plain = assignment(statement)
        term = Reader().read(plain[1]) if plain else None
        if plain is not None and term is not None and term.head == "expand_as" and term.args[0].node is not None:
            statements.append(assigned(plain[0], term.args[0].node))
        else:
            statements.append(statement)
    if statements == statements_of(view.forward):
        return None
    return with_statements(view.program, view.forward, statements)


def _means_the_same(before: View, after: View) -> bool:
    """Whether the results have one shape, and what has another shape in between is only used entry by entry."""
    result = {code_of(node): node for each in statements_of(after.forward) if (node := returned(each)) is not None}
    reader = Reader(modules=after.modules, rank_of=after.rank)
    for node in result.values():
        term = reader.read(node)
        if before.value(term) is None or before.value(term) != after.value(term):
            return False
    operations = [node for node in walk(after.forward.body) if isinstance(node, cst.Call | cst.BinaryOperation)]
    return all(
        term.head in _SHAPED_ALIKE or not any(before.value(arg) != after.value(arg) for arg in term.args)
        for term in map(reader.read, operations)
    )


def code_of_term(term: Term) -> str:
    assert term.node is not None
    return code_of(term.node)


def _repeated(view: View) -> Iterator[list[cst.BaseExpression]]:
    """Groups of expressions outside of loops that compute the same."""
    groups: dict[int, list[cst.BaseExpression]] = {}
    for site in view.sites:
        if site.head in _CHEAP | _NEW or not site.args or isinstance(site.node, cst.Name) or site.node is None:
            continue
        nodes = groups.setdefault(site.key, [])
        if site.node not in nodes:
            nodes.append(site.node)
    for nodes in groups.values():
        if len(nodes) > 1 and all(_place(node, view) >= 0 for node in nodes):
            yield nodes


def _place(node: cst.BaseExpression, view: View) -> int:
    """Place of the plain statement that holds an expression; -1 for expressions in loops."""
    for place, statement in enumerate(statements_of(view.forward)):
        if any(each is node for each in walk(statement)):
            return -1 if is_compound(statement) else place
    return -1


def _layers_by_input(view: View) -> list[list[tuple[int, Term]]]:
    """Places and terms of assignments `name = layer(x)`, grouped by x, by having a bias and by size."""
    groups: dict[tuple[object, ...], list[tuple[int, Term]]] = {}
    reader = Reader(modules=view.modules, rank_of=view.rank)
    for place, statement in enumerate(statements_of(view.forward)):
        plain = assignment(statement)
        term = reader.read(plain[1]) if plain else None
        if term is not None and term.head == "linear" and term.args[0].node is not None:
            weight = view.value(term.args[1])
            key = (term.args[0], len(term.args), weight.shape if weight else None)
            groups.setdefault(key, []).append((place, term))
    return [group for key, group in groups.items() if key[2] is not None]


class _Exchanger(cst.CSTTransformer):
    """Puts a name in the place of some expressions."""

    def __init__(self, nodes: set[cst.BaseExpression], name: str) -> None:
        self.nodes = nodes
        self.name = name

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        return cst.Name(self.name) if original_node in self.nodes else updated_node
