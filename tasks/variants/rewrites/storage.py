"""Memory: results written into temporaries that nobody reads again, copies left out, layouts that suit an operation."""

import random
from collections.abc import Iterator

import libcst as cst

from tasks.variants.names import used_names
from tasks.variants.rewrites.forward import (
    assignment,
    returned,
    reused_names,
    statements_of,
    with_statements,
    writes_in_place,
)
from tasks.variants.rewrites.fresh import is_new
from tasks.variants.rewrites.matching import Match
from tasks.variants.rewrites.reading import Reader, code_of
from tasks.variants.rewrites.rules import replace_one, rule
from tasks.variants.rewrites.view import View, view_of
from tasks.variants.rewriting import rewrite

_COPYING = ("contiguous", "clone")


@rewrite("memory")
def accumulate_in_place(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A loop adds to its total in place. Assumes a total made before the loop and read nowhere else in it."""
    view = view_of(program)
    if view is None:
        return None
    totals = list(_accumulations(view))
    if not totals:
        return None
    node, name, added = rng.choice(totals)
    changed = view.program.deep_replace(
        node, cst.SimpleStatementLine([cst.AugAssign(cst.Name(name), cst.AddAssign(), added)])
    )
    assert isinstance(changed, cst.Module)
    return reused_names(changed)


@rewrite("memory")
def drop_copy(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A copy that nobody writes to is left out. Assumes nothing: it applies where forward writes in place nowhere."""
    view = view_of(program)
    if view is None or writes_in_place(view.forward) or ".view(" in code_of(view.forward):
        return None
    copies = [site.node for site in view.sites if isinstance(site.node, cst.Call) and _is_copy(site.node)]
    copies = [node for node in copies if not _is_result(node, view)]
    if not copies:
        return None
    node = rng.choice(copies)
    assert isinstance(node, cst.Call)
    assert isinstance(node.func, cst.Attribute)
    changed = view.program.deep_replace(node, node.func.value)
    assert isinstance(changed, cst.Module)
    return reused_names(changed)


@rewrite("memory")
def convolve_channels_last(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A convolution's input is laid out with its channels last. Assumes pictures; the values are the same."""
    laid_out = "_conv(_x.contiguous(memory_format=torch.channels_last))"
    rules = [
        rule("nn.Conv2d(_x, _conv, _v, _c, padding=_p)", laid_out, when=_is_plain),
        rule("nn.Conv2d(_x, _conv, _v, _c)", laid_out, when=_is_plain),
    ]
    return replace_one(program, rng, rules)


@rewrite("memory")
def return_directly(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The last result is returned without a name. Assumes nothing."""
    view = view_of(program)
    if view is None:
        return None
    statements = statements_of(view.forward)
    if len(statements) < 2:
        return None
    result, last = returned(statements[-1]), assignment(statements[-2])
    if last is None or not isinstance(result, cst.Name) or result.value != last[0]:
        return None
    answer = cst.SimpleStatementLine([cst.Return(last[1])])
    return reused_names(with_statements(view.program, view.forward, [*statements[:-2], answer]))


def _is_plain(match: Match) -> bool:
    return match.holes["_x"].head != "contiguous"


def _accumulations(view: View) -> Iterator[tuple[cst.SimpleStatementLine, str, cst.BaseExpression]]:
    """Statements `total = total + added` of loops, with the total and what is added."""
    for loop in statements_of(view.forward):
        if not isinstance(loop, cst.For) or not isinstance(loop.body, cst.IndentedBlock):
            continue
        reads = used_names(loop)
        for statement in loop.body.body:
            match statement:
                case cst.SimpleStatementLine(
                    body=[
                        cst.Assign(
                            targets=[cst.AssignTarget(target=cst.Name(value=name))],
                            value=cst.BinaryOperation(left=cst.Name(value=left), operator=cst.Add(), right=added),
                        )
                    ]
                ) if name == left and reads.count(name) == 2 and _is_total(name, added, view):
                    yield statement, name, added


def _is_total(name: str, added: cst.BaseExpression, view: View) -> bool:
    """Whether a name holds new memory before the loop, as large as what is added to it."""
    made = [plain[1] for each in statements_of(view.forward) if (plain := assignment(each)) and plain[0] == name]
    total = view.known.get(name)
    value = view.value(Reader(modules=view.modules, rank_of=view.rank).read(added))
    return bool(made) and all(is_new(each, view) for each in made) and total is not None and total == value


def _is_copy(node: cst.Call) -> bool:
    return isinstance(node.func, cst.Attribute) and node.func.attr.value in _COPYING and not node.args


def _is_result(node: cst.BaseExpression, view: View) -> bool:
    """Whether a copy is what forward returns, so that the caller would see whose memory it is."""
    results = [result for each in statements_of(view.forward) if (result := returned(each)) is not None]
    names = {result.value for result in results if isinstance(result, cst.Name)}
    held = [plain[1] for each in statements_of(view.forward) if (plain := assignment(each)) and plain[0] in names]
    return any(node is each for each in (*results, *held))
