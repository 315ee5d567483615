"""Fusion of products with what is added to them and with what scales them.

Linear layers are read as the products that they compute. So all of it assumes that nobody hooks them: only what a
constructor gives them in its text is seen.
"""

import random

import libcst as cst

from tasks.variants.rewrites.conditions import both, numbers, ranks, vectors_of
from tasks.variants.rewrites.matching import Match
from tasks.variants.rewrites.rules import replace_all, replace_one, rule
from tasks.variants.rewrites.shapes import broadcast_shape
from tasks.variants.rewriting import rewrite


def _adds_to_product(match: Match) -> bool:
    """The added tensor broadcasts to the product, so that the result keeps the product's shape."""
    a, b, c = (match.value(hole) for hole in ("_a", "_b", "_c"))
    if a is None or b is None or c is None or c.number is not None:
        return False
    shape = (*a.shape[:-1], b.shape[-1])
    return broadcast_shape(shape, c.shape) == shape


_MATRICES = both(ranks(a=2, b=2), _adds_to_product)
_BATCHES = both(ranks(a=3, b=3), _adds_to_product)
_ALPHA = numbers("s")


@rewrite("fusion")
def call_addmm(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """a @ b * s + c is torch.addmm. Assumes matrices, a number s and a c that broadcasts to the product."""
    rules = [
        rule("torch.matmul(_a, _b) * _s + _c", "torch.addmm(_c, _a, _b, alpha=_s)", when=both(_MATRICES, _ALPHA)),
        rule("torch.matmul(_a, _b) + _c", "torch.addmm(_c, _a, _b)", when=_MATRICES),
    ]
    return replace_one(program, rng, rules)


@rewrite("fusion")
def call_baddbmm(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """a @ b * s + c of batches is torch.baddbmm. Assumes three dimensions and a c that broadcasts to the product."""
    rules = [
        rule("torch.matmul(_a, _b) * _s + _c", "torch.baddbmm(_c, _a, _b, alpha=_s)", when=both(_BATCHES, _ALPHA)),
        rule("torch.matmul(_a, _b) + _c", "torch.baddbmm(_c, _a, _b)", when=_BATCHES),
    ]
    return replace_one(program, rng, rules)


@rewrite("fusion")
def call_linear(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """x @ w.t() + b is F.linear, also where a number scales the product. Assumes a matrix w and a vector b."""
    rules = [
        rule("torch.matmul(_x, _w.mT) + _b", "F.linear(_x, _w, _b)", when=ranks(w=2, b=1)),
        rule("torch.matmul(_x, _w.mT) * _s + _b", "F.linear(_x, _w * _s, _b)", when=both(ranks(w=2, b=1), _ALPHA)),
        rule("torch.matmul(_x, _w) + _b", "F.linear(_x, _w.t(), _b)", when=ranks(w=2, b=1)),
        rule("torch.matmul(_x, _w) * _s + _b", "F.linear(_x, _w.t() * _s, _b)", when=both(ranks(w=2, b=1), _ALPHA)),
    ]
    return replace_one(program, rng, rules)


@rewrite("fusion")
def linear_by_addmm(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A linear layer is torch.addmm with its weight transposed.

    Assumes a matrix, and a layer with a bias that nobody hooks.
    """
    return replace_one(
        program, rng, [rule("F.linear(_x, _w, _b)", "torch.addmm(_b, _x, _w.t())", when=ranks(x=2, w=2, b=1))]
    )


@rewrite("fusion")
def residual_by_addmm(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A linear layer plus a residual is torch.addmm onto residual and bias. Assumes matrices."""
    pattern, replacement = "F.linear(_a, _w, _b) + _c", "torch.addmm(_c + _b, _a, _w.t())"
    return replace_one(program, rng, [rule(pattern, replacement, when=both(ranks(a=2, w=2, b=1, c=2), _same_rows))])


def _same_rows(match: Match) -> bool:
    a, w, c = (match.value(hole) for hole in ("_a", "_w", "_c"))
    return a is not None and w is not None and c is not None and c.shape == (a.shape[0], w.shape[0])


@rewrite("algebra")
def fold_scale_into_linear(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Scaling a linear layer's output is scaling its weight and bias. Assumes a number, or a vector along the output.

    Done where the weight is no larger than the output.
    """
    vector = both(ranks(w=2, s=1), vectors_of("s", of="b"), _weight_is_smaller)
    number = both(ranks(w=2, b=1), numbers("s"), _weight_is_smaller)
    rules = [
        rule(
            "F.linear(_x, _w, _b) * _s + _c",
            "F.linear(_x, _w * _s[:, None], _b * _s + _c)",
            when=both(vector, ranks(c=1)),
        ),
        rule("F.linear(_x, _w, _b) * _s", "F.linear(_x, _w * _s[:, None], _b * _s)", when=vector),
        rule("F.linear(_x, _w, _b) * _s", "F.linear(_x, _w * _s, _b * _s)", when=number),
        rule(
            "F.linear(_x, _w, _b) * _s + F.linear(_x, _w, _b)",
            "F.linear(_x, _w * _t, _b * _t)",
            when=number,
            given=_plus_one,
        ),
        rule(
            "torch.matmul(F.linear(_x, _w, _b), torch.diag(_s)) + _c",
            "F.linear(_x, _w * _s[:, None], _b * _s + _c)",
            when=both(vector, ranks(c=1)),
        ),
    ]
    return replace_one(program, rng, rules)


def _plus_one(match: Match) -> dict[str, str]:
    scale = match.number("_s")
    return {"_t": repr(1 + (scale or 0))}


def _weight_is_smaller(match: Match) -> bool:
    x, w = match.value("_x"), match.value("_w")
    if x is None or w is None:
        return False
    rows = 1
    for each in x.shape[:-1]:
        rows *= each
    return w.shape[1] <= rows


@rewrite("algebra")
def chain_linears(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Two linear layers with nothing between them are one. Assumes biases; done where it takes fewer products."""
    replacement = "F.linear(_x, torch.matmul(_w, _v), F.linear(_c, _w, _b))"
    return replace_one(
        program, rng, [rule("F.linear(F.linear(_x, _v, _c), _w, _b)", replacement, when=_chain_is_cheaper)]
    )


def _chain_is_cheaper(match: Match) -> bool:
    x, v, w = (match.value(hole) for hole in ("_x", "_v", "_w"))
    if x is None or v is None or w is None:
        return False
    rows = 1
    for each in x.shape[:-1]:
        rows *= each
    hidden, features = v.shape
    classes = w.shape[0]
    return hidden * features * classes + rows * features * classes < rows * hidden * (features + classes)


@rewrite("algebra")
def split_concatenated_input(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A linear layer on two inputs side by side is the sum of two layers. Assumes that both inputs are matrices."""
    replacement = "F.linear(_x, _w[:, :_x.shape[-1]], _b) + F.linear(_h, _w[:, _x.shape[-1]:])"
    return replace_all(program, rng, [rule("F.linear(torch.cat([_x, _h], 1), _w, _b)", replacement)])
