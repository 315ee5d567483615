"""Memory: forwards that treat every row by itself, taken a few rows at a time so that all fits the cache."""

import itertools
import math
import random
from collections.abc import Sequence
from typing import Literal

import libcst as cst

from tasks.variants.names import used_names, words
from tasks.variants.rewrites.forward import (
    assignment,
    find_method,
    parameters_of,
    parse_statements,
    returned,
    reused_names,
    statements_of,
    with_statements,
)
from tasks.variants.rewrites.reading import Reader, code_of
from tasks.variants.rewrites.shapes import BROADCASTING, COMPARING, ENTRYWISE, REDUCING, dimensions
from tasks.variants.rewrites.terms import Term, leaf
from tasks.variants.rewrites.view import View, view_of
from tasks.variants.rewriting import rewrite

Kind = Literal["row", "constant"]

_BLOCK_ELEMENTS = 32_768
"""Elements of a block's largest temporary: 128 KiB, of which several fit into a core's own cache."""
_FEWEST_ROWS = 16
"""Of a matrix; products of fewer rows are no longer efficient."""
_OF_SINGLE_ENTRIES = ENTRYWISE | BROADCASTING | COMPARING | {"expand_as"}
_ALONG_LAST = words("softmax log_softmax cumsum cumprod") | REDUCING
_OF_BATCHES = words("nn.Conv2d batch_norm avg_pool2d scaled_dot_product_attention zeros_like ones_like")


@rewrite("memory")
def work_by_rows(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The whole forward is done for a few rows at a time. Assumes that every row is computed from the same row only.

    That is certain where all steps are entrywise, along the last dimension, or layers on it.
    """
    view = view_of(program)
    result = _result(view) if view else None
    value = view.value(view.terms[result]) if view and result else None
    if view is None or value is None or not value.rank or "blocks" in used_names(view.forward):
        return None
    split = [name for name in parameters_of(view.forward) if _has_rows(name, value.shape[0], view)]
    rows = max(_rows_in_block(view, value.shape[0]), _FEWEST_ROWS if value.rank <= 2 else 1)
    kinds: dict[str, Kind] = dict.fromkeys(split, "row")
    if not split or rows >= value.shape[0] or not _is_by_rows(view, kinds):
        return None
    steps = [assignment(statement) for statement in statements_of(view.forward)]
    constant = itertools.takewhile(lambda plain: plain is not None and kinds[plain[0]] == "constant", steps)
    return _by_rows(reused_names(view.program), split, rows, once=len(list(constant)))


def _by_rows(program: cst.Module, split: Sequence[str], rows: int, *, once: int) -> cst.Module:
    """The program with all but the first `once` statements in a loop over blocks of rows."""
    forward = find_method(program, "forward")
    assert forward is not None
    *steps, last = statements_of(forward)
    result = returned(last)
    assert result is not None
    sources = ", ".join(f"{name}.split({rows})" for name in split)
    iterated = sources if len(split) == 1 else f"zip({sources})"
    loop = f"for {', '.join(split)} in {iterated}:\n    blocks.append({code_of(result)})\n"
    first, loop_statement, end = parse_statements(f"blocks = []\n{loop}return torch.cat(blocks)\n")
    assert isinstance(loop_statement, cst.For)
    body = loop_statement.body.with_changes(body=[*steps[once:], *loop_statement.body.body])
    return with_statements(program, forward, [*steps[:once], first, loop_statement.with_changes(body=body), end])


def _result(view: View) -> cst.BaseExpression | None:
    """What the last statement returns, unless there is nothing to be done for it."""
    *steps, last = statements_of(view.forward)
    result = returned(last)
    return None if not steps and isinstance(result, cst.Name) else result


def _has_rows(name: str, rows: int, view: View) -> bool:
    value = view.value(leaf(name))
    return value is not None and value.rank > 0 and value.shape[0] == rows


def _rows_in_block(view: View, rows: int) -> int:
    """Rows that a block may have, a power of two, so that the largest temporary fits."""
    sizes = [math.prod(value.shape) // rows for value in view.known.values() if value.rank and value.shape[0] == rows]
    return 2 ** int(math.log2(max(_BLOCK_ELEMENTS // max([*sizes, 1]), 1)))


def _is_by_rows(view: View, kinds: dict[str, Kind]) -> bool:
    """Whether every step, and the result, keeps the rows apart."""
    reader = Reader(modules=view.modules, rank_of=view.rank)
    *steps, last = statements_of(view.forward)
    result = returned(last)
    return (
        result is not None
        and _learn_kinds(steps, kinds, reader, view)
        and _kind(reader.read(result), kinds, view) == "row"
    )


def _learn_kinds(statements: Sequence[cst.CSTNode], kinds: dict[str, Kind], reader: Reader, view: View) -> bool:
    for statement in statements:
        plain = assignment(statement)
        if plain is not None:
            kind = _kind(reader.read(plain[1]), kinds, view)
            if kind is None or kinds.setdefault(plain[0], kind) != kind:
                return False
        elif isinstance(statement, cst.For) and isinstance(statement.body, cst.IndentedBlock):
            if _kind(reader.read(statement.iter), kinds, view) != "constant":
                return False
            kinds.update(dict.fromkeys(used_names(statement.target), "constant"))
            if not _learn_kinds(statement.body.body, kinds, reader, view):
                return False
        else:
            return False
    return True


def _kind(term: Term, kinds: dict[str, Kind], view: View) -> Kind | None:
    """Whether a term's rows come from the rows of the inputs, or it is the same for all rows; None for neither."""
    if not term.args:
        known = term.number is not None or term.head.startswith(("self.", "torch.")) or not term.head.isidentifier()
        return kinds.get(term.head, "constant" if known or term.head in ("True", "False", "None") else None)
    parts = [_kind(arg, kinds, view) for arg in term.args]
    if all(part == "constant" for part in parts):
        return "constant"
    first = view.value(term.args[0])
    if first is None or None in parts:
        return None
    if term.head == "size":
        return "constant" if term.args[1].number not in (0, -first.rank, None) else None
    return "row" if _keeps_rows_apart(term, parts, view) else None


def _keeps_rows_apart(term: Term, parts: Sequence[Kind | None], view: View) -> bool:
    head, args = term.head, term.args
    values = [view.value(arg) for arg in args]
    rank = values[0].rank if values[0] else 0
    if head in _OF_SINGLE_ENTRIES:
        return _meets_rows(term, parts, view)
    if parts[0] != "row":
        return False
    if head in _ALONG_LAST:
        named = dimensions(values[0], args[1]) if values[0] and len(args) > 1 else None
        return bool(named) and 0 not in (named or ())
    if head == "linear" or (head in view.modules and view.modules[head].head == "nn.LayerNorm"):
        return rank > 1
    if head == "matmul":
        return (rank > 1 and parts[1] == "constant") or (rank > 2 and parts[1] == "row")
    if head in ("mT", "gather"):
        return rank > 2 if head == "mT" else args[1].number not in (0, -rank)
    if head == "index":
        return args[1] == Term("slice", (leaf(""),) * 3)
    return head in _OF_BATCHES


def _meets_rows(term: Term, parts: Sequence[Kind | None], view: View) -> bool:
    """Whether, in an entrywise step, rows stand first in everything that has rows, and in nothing else."""
    result = view.value(term)
    if result is None:
        return False
    for arg, part in zip(term.args, parts, strict=True):
        value = view.value(arg)
        if value is None:
            if part == "row":
                return False
        elif (part == "row" and value.rank != result.rank) or (
            part == "constant" and value.rank == result.rank and value.rank and value.shape[0] != 1
        ):
            return False
    return True
