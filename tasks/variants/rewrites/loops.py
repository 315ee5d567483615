"""Loops over time: taken as one scan, one product or one library call, or spared their list."""

import random

import libcst as cst

from tasks.variants.names import used_names
from tasks.variants.rewrites.blocks import block_rule, replace_block, statement_term
from tasks.variants.rewrites.conditions import both, numbers, ranks
from tasks.variants.rewrites.forward import (
    reused_names,
    statements_of,
    with_statements,
)
from tasks.variants.rewrites.matching import Match, unify
from tasks.variants.rewrites.reading import Reader, code_of
from tasks.variants.rewrites.rules import fill
from tasks.variants.rewrites.shapes import ENTRYWISE
from tasks.variants.rewrites.slices import is_slice, without_slices
from tasks.variants.rewrites.terms import Term, expression_of
from tasks.variants.rewrites.view import View, view_of
from tasks.variants.rewriting import rewrite

_SCAN = """
    _h = torch.zeros_like(_x[:, 0])
    _out = []
    for _t in range(_n):
        _h = {step}
        _out.append(_h)
    _r = torch.stack(_out, dim=1)
"""


@rewrite("algebra")
def scan_by_cumsum(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A running total of what each step adds is torch.cumsum. Assumes that a step depends on its own time only."""
    rule = block_rule(_SCAN.format(step="_h + _f"), "_r = torch.cumsum(_w, dim=1)", when=_is_sliced, given=_whole)
    return replace_block(program, rng, [rule])


@rewrite("algebra")
def smooth_by_product(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Exponential smoothing of rows is a product with a triangle of decays. Assumes a matrix and constant weights."""
    replacement = """
        step = torch.arange(_n, device=_x.device)
        decay = torch.tril(_a ** (step[:, None] - step).clamp(min=0))
        _r = _b * torch.matmul(_x, decay.t())
    """
    rule = block_rule(
        _SCAN.format(step="_a * _h + _b * _x[:, _t]"), replacement, when=both(ranks(x=2), numbers("a", "b"), _all_steps)
    )
    return replace_block(program, rng, [rule])


@rewrite("fusion")
def call_rnn(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A loop of h = tanh(first(x[:, t]) + second(h)) is torch.rnn_tanh. Assumes one bias, the first layer's."""
    pattern = """
        _h = _z
        _out = []
        for _t in range(_n):
            _h = torch.tanh(F.linear(_x[:, _t], _w, _b) + F.linear(_h, _u))
            _out.append(_h)
        _r = torch.stack(_out, dim=1)
    """
    replacement = """
        _h = _z
        weights = [_w, _u, _b, torch.zeros_like(_b)]
        _r = torch.rnn_tanh(_x, _h[None], weights, True, 1, 0.0, False, False, True)[0]
    """
    return replace_block(program, rng, [block_rule(pattern, replacement, when=both(_all_steps, ranks(x=3)))])


@rewrite("memory")
def write_steps_in_place(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The results of a loop's steps are written where they belong, not stacked. Assumes steps of one known shape."""
    view = view_of(program)
    places = (
        [place for place in range(len(statements_of(view.forward)) - 2) if _is_stacked(place, view)] if view else []
    )
    if view is None or not places:
        return None
    return _written_in_place(view, rng.choice(places))


_STEPS = block_rule("_out = []\nfor _t in range(_n):\n    _out.append(_h)\n_r = torch.stack(_out, dim=1)", "")


def _steps(place: int, view: View) -> Match | None:
    """The list, the loop with nothing but its last statement, and the stack, as a match of their holes."""
    start, loop, stack = statements_of(view.forward)[place : place + 3]
    if not isinstance(loop, cst.For) or not isinstance(loop.body, cst.IndentedBlock):
        return None
    short = loop.with_changes(body=loop.body.with_changes(body=loop.body.body[-1:]))
    reader = Reader(modules=view.modules, rank_of=view.rank)
    site = Term("block", tuple(statement_term(each, reader) for each in (start, short, stack)))
    for holes, through, _ in unify(_STEPS.pattern, site):
        return Match(site, holes, through, view)
    return None


def _is_stacked(place: int, view: View) -> bool:
    match = _steps(place, view)
    return match is not None and match.rank("_h") in (1, 2) and match.holes["_out"].head not in _inner(place, view)


def _inner(place: int, view: View) -> set[str]:
    """Names read in the loop besides its last statement."""
    loop = statements_of(view.forward)[place + 1]
    assert isinstance(loop, cst.For)
    assert isinstance(loop.body, cst.IndentedBlock)
    return {name for statement in loop.body.body[:-1] for name in used_names(statement)}


def _written_in_place(view: View, place: int) -> cst.Module:
    match = _steps(place, view)
    assert match is not None
    rest = ", _h.shape[1]" if match.rank("_h") == 2 else ""
    statements = statements_of(view.forward)
    loop = statements[place + 1]
    assert isinstance(loop, cst.For)
    assert isinstance(loop.body, cst.IndentedBlock)
    written = fill(f"_out = _h.new_empty(_h.shape[0], _n{rest})\n_out[:, _t] = _h", match.holes)
    body = loop.body.with_changes(body=[*loop.body.body[:-1], written[1]])
    added = [written[0], loop.with_changes(body=body), *fill("_r = _out", match.holes)]
    same = match.holes["_r"].head == match.holes["_out"].head
    statements[place : place + 3] = added[:2] if same else added
    return reused_names(with_statements(view.program, view.forward, statements))


def _is_sliced(match: Match) -> bool:
    return _all_steps(match) and _is_pointwise_slice(match.holes["_f"], match.holes["_t"], match)


def _all_steps(match: Match) -> bool:
    x = match.value("_x")
    return x is not None and x.rank >= 2 and match.number("_n") == x.shape[1]


def _is_pointwise_slice(term: Term, time: Term, match: Match) -> bool:
    """Whether a term is made entrywise from slices of tensors that all look like x, and from numbers."""
    if is_slice(term, time):
        return match.view.value(term.args[0]) == match.value("_x")
    if term.number is not None:
        return True
    return term.head in ENTRYWISE and all(_is_pointwise_slice(arg, time, match) for arg in term.args)


def _whole(match: Match) -> dict[str, str]:
    """What the steps add, for all times at once."""
    return {"_w": code_of(without_slices(expression_of(match.holes["_f"]), match.holes["_t"].head))}
