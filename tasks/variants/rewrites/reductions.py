"""Algebra of reductions: sums taken before products, distances without differences, scans without flips."""

import random

import libcst as cst

from tasks.variants.rewrites.conditions import numbers, ranks
from tasks.variants.rewrites.matching import Match
from tasks.variants.rewrites.rules import replace_one, rule
from tasks.variants.rewriting import rewrite

_DIFFERENCES = "torch.sum((_a[:, None, :] - _b[None, :, :]) ** 2, dim=-1)"
_ROWS = ranks(a=2, b=2)


@rewrite("algebra")
def sum_before_product(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The sum of a product's rows or columns is a product with a sum. Assumes matrices."""
    rules = [
        rule("torch.sum(torch.matmul(_a, _b), dim=-1)", "torch.mv(_a, torch.sum(_b, dim=1))", when=_ROWS),
        rule(
            "torch.sum(torch.matmul(_a, _b), dim=-1, keepdim=True)",
            "torch.matmul(_a, torch.sum(_b, dim=1, keepdim=True))",
            when=_ROWS,
        ),
        rule("torch.sum(torch.matmul(_a, _b), dim=-2)", "torch.matmul(torch.sum(_a, dim=0), _b)", when=_ROWS),
    ]
    return replace_one(program, rng, rules)


@rewrite("algebra")
def reduce_before_linear(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The mean or sum of a linear layer's outputs is a layer with the mean or sum of its weight. Assumes a bias."""
    rules = [
        rule(
            f"torch.{reduce}(F.linear(_x, _w, _b), dim=-1, keepdim=True)",
            f"F.linear(_x, torch.{reduce}(_w, dim=0, keepdim=True), torch.{reduce}(_b, dim=0, keepdim=True))",
            when=ranks(w=2, b=1),
        )
        for reduce in ("mean", "sum")
    ]
    return replace_one(program, rng, rules)


@rewrite("algebra")
def expand_squared_distances(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """|a - b|^2 is |a|^2 + |b|^2 - 2 a.b. Assumes rows that differ by more than rounding: cancellation loses digits."""
    replacement = """
        left = torch.sum(_a * _a, dim=1)
        right = torch.sum(_b * _b, dim=1)
        left[:, None] + right - 2.0 * torch.matmul(_a, _b.t())
    """
    return replace_one(program, rng, [rule(_DIFFERENCES, replacement, when=_ROWS)])


@rewrite("algebra")
def expand_squared_distances_by_addmm(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """|a|^2 + |b|^2 - 2 a.b by one torch.addmm. Assumes rows that differ by more than rounding."""
    replacement = """
        left = torch.sum(_a * _a, dim=1, keepdim=True)
        right = torch.sum(_b * _b, dim=1)
        torch.addmm(left + right, _a, _b.t(), alpha=-2.0)
    """
    return replace_one(program, rng, [rule(_DIFFERENCES, replacement, when=_ROWS)])


@rewrite("fusion")
def call_cdist(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Pairwise squared distances are the square of torch.cdist. Assumes matrices; forms no tensor of differences."""
    replacement = 'torch.cdist(_a, _b, compute_mode="donot_use_mm_for_euclid_dist") ** 2'
    return replace_one(program, rng, [rule(_DIFFERENCES, replacement, when=_ROWS)])


@rewrite("algebra")
def scan_without_flips(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """flip, cumsum, flip is the total minus what came before. Assumes sums that fp32 holds to the same accuracy."""
    pattern = "torch.flip(torch.cumsum(torch.flip(_x, [_d]), dim=_d), [_d])"
    replacement = "_x + torch.sum(_x, dim=_d, keepdim=True) - torch.cumsum(_x, dim=_d)"
    return replace_one(program, rng, [rule(pattern, replacement)])


@rewrite("algebra")
def scan_by_triangle(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A reverse cumulative sum down a matrix is a product with a triangle of ones. Assumes finite entries."""
    pattern = "torch.flip(torch.cumsum(torch.flip(_x, [-2]), dim=-2), [-2])"
    replacement = "torch.matmul(torch.triu(_x.new_ones(_x.shape[0], _x.shape[0])), _x)"
    return replace_one(program, rng, [rule(pattern, replacement, when=ranks(x=2))])


@rewrite("fusion")
def call_amax(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The values of torch.max along a dimension are torch.amax, which finds no positions.

    Assumes no gradient where the largest entries are equal: torch.max gives it to one of them, torch.amax to all.
    """
    rules = [
        rule(f"torch.{name}(_x, {dims})", f"torch.{name}(_x, {dims})", when=_finds_positions)
        for name in ("amax", "amin")
        for dims in ("dim=_d, keepdim=True", "dim=_d")
    ]
    return replace_one(program, rng, rules)


def _finds_positions(match: Match) -> bool:
    """Whether a pair is made, of which nobody sees the positions."""
    match match.site.node:
        case cst.Subscript(value=cst.Call()) | cst.Attribute(value=cst.Call()):
            return match.number("_d") is not None
    return False


@rewrite("fusion")
def call_vector_norm(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The root of a sum of squares is torch.linalg.vector_norm. Assumes nothing."""
    rules = [
        rule(
            "torch.sqrt(torch.sum(_x ** 2, dim=_d, keepdim=True))", "torch.linalg.vector_norm(_x, dim=_d, keepdim=True)"
        ),
        rule("torch.sqrt(torch.sum(_x ** 2, dim=_d))", "torch.linalg.vector_norm(_x, dim=_d)"),
    ]
    return replace_one(program, rng, rules)


@rewrite("fusion")
def call_logsumexp(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """max + log(sum(exp(x - max))) is torch.logsumexp. Assumes nothing."""
    top = "torch.amax(_x, dim=_d, keepdim=True)"
    pattern = f"{top} + torch.log(torch.sum(torch.exp(_x - {top}), dim=_d, keepdim=True))"
    return replace_one(program, rng, [rule(pattern, "torch.logsumexp(_x, dim=_d, keepdim=True)")])


@rewrite("algebra")
def scale_after_reducing(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A mean or sum of scaled entries is the scaled mean or sum. Assumes a number as scale."""
    rules = [
        rule(f"torch.{reduce}(_x * _s, dim=_d)", f"torch.{reduce}(_x, dim=_d) * _s", when=numbers("s"))
        for reduce in ("mean", "sum")
    ]
    return replace_one(program, rng, rules)


@rewrite("algebra")
def sum_by_product(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The sum of entrywise products of rows is an einsum, which stores no products. Assumes equal matrices' shapes."""
    rules = [
        rule("torch.sum(_a * _b, dim=-1)", 'torch.einsum("ij,ij->i", _a, _b)', when=_same_matrices),
        rule("torch.sum(_x ** 2, dim=-1)", 'torch.einsum("ij,ij->i", _x, _x)', when=ranks(x=2)),
    ]
    return replace_one(program, rng, rules)


def _same_matrices(match: Match) -> bool:
    return match.rank("_a") == 2 and match.value("_a") == match.value("_b")
