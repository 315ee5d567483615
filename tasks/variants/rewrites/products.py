"""Algebra of matrix products: what need not be multiplied, and in which order."""

import random

import libcst as cst

from tasks.variants.rewrites.conditions import ranks
from tasks.variants.rewrites.matching import Match
from tasks.variants.rewrites.reading import code_of
from tasks.variants.rewrites.rules import replace_one, rule
from tasks.variants.rewrites.shapes import Shape
from tasks.variants.rewriting import rewrite

_BATCHED_PRODUCT = 'torch.einsum("bij,bjk->bik", _a, _b)'
_VECTOR_CHAIN = f'torch.einsum("bik,bk->bi", {_BATCHED_PRODUCT}, _c)'


def _cost(left: Shape, right: Shape) -> int:
    """Multiplications of the matrix product of two shapes."""
    count = right[-1] if len(right) > 1 else 1
    for size in left:
        count *= size
    return count


def _right_first_is_cheaper(match: Match) -> bool:
    a, b, c = (match.value(hole) for hole in ("_a", "_b", "_c"))
    if a is None or b is None or c is None or min(a.rank, b.rank) < 2 or not c.rank:
        return False
    left = _cost(a.shape, b.shape) + _cost((*a.shape[:-1], b.shape[-1]), c.shape)
    inner = (*b.shape[:-1], c.shape[-1]) if c.rank > 1 else b.shape[:-1]
    return _cost(b.shape, c.shape) + _cost(a.shape, inner) < left


def _is_square(match: Match) -> bool:
    a = match.value("_a")
    return a is not None and a.rank == 2 and a.shape[0] == a.shape[1] and match.rank("_b") == 2


@rewrite("algebra")
def broadcast_diagonal(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A product with a diagonal matrix is a broadcast multiplication. Assumes matrices on the other side."""
    rules = [
        rule("torch.matmul(torch.diag(_a), _b)", "_a[:, None] * _b", when=ranks(a=1, b=2)),
        rule("torch.matmul(_b, torch.diag(_a))", "_b * _a", when=ranks(a=1)),
    ]
    return replace_one(program, rng, rules)


@rewrite("algebra")
def separate_diagonal(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """x @ (a @ b + diag(s)) is (x @ a) @ b + x * s. Assumes a vector s; pays where a @ b has a low rank."""
    rules = [
        rule(
            "torch.matmul(_x, torch.matmul(_a, _b) + torch.diag(_s))",
            "torch.matmul(torch.matmul(_x, _a), _b) + _x * _s",
            when=ranks(x=2, a=2, b=2, s=1),
        ),
        rule("torch.matmul(_x, _a + torch.diag(_s))", "torch.matmul(_x, _a) + _x * _s", when=ranks(x=2, a=2, s=1)),
    ]
    return replace_one(program, rng, rules)


@rewrite("algebra")
def reassociate(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """(a @ b) @ c is a @ (b @ c). Assumes known shapes; done where that takes fewer multiplications."""
    pattern, replacement = "torch.matmul(torch.matmul(_a, _b), _c)", "torch.matmul(_a, torch.matmul(_b, _c))"
    return replace_one(program, rng, [rule(pattern, replacement, when=_right_first_is_cheaper)])


@rewrite("algebra")
def contract_vector_first(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """In a chain of batched einsums the vector is multiplied first. Assumes the spelling bij,bjk->bik, bik,bk->bi."""
    replacement = 'torch.einsum("bij,bj->bi", _a, torch.einsum("bjk,bk->bj", _b, _c))'
    return replace_one(program, rng, [rule(_VECTOR_CHAIN, replacement)])


@rewrite("algebra")
def multiply_column_first(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """In a chain of batched einsums the vector is a column that torch.bmm takes first. Assumes the same spelling."""
    return replace_one(program, rng, [rule(_VECTOR_CHAIN, "torch.bmm(_a, torch.bmm(_b, _c[:, :, None]))[:, :, 0]")])


@rewrite("fusion")
def call_bmm(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """einsum bij,bjk->bik is torch.bmm, and bik,bk->bi a product with a column. Assumes nothing."""
    rules = [
        rule(_BATCHED_PRODUCT, "torch.bmm(_a, _b)"),
        rule('torch.einsum("bik,bk->bi", _a, _b)', "torch.bmm(_a, _b[:, :, None])[:, :, 0]"),
    ]
    return replace_one(program, rng, rules)


@rewrite("algebra")
def multiply_kronecker_factors(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """kron(a, b) @ x is a product with each factor in turn. Assumes matrices."""
    replacement = """
        inner = torch.matmul(_b, _x.reshape(_a.shape[1], _b.shape[1], -1))
        torch.matmul(_a, inner.reshape(_a.shape[1], -1)).reshape(_a.shape[0] * _b.shape[0], -1)
    """
    return replace_one(
        program, rng, [rule("torch.matmul(torch.kron(_a, _b), _x)", replacement, when=ranks(a=2, b=2, x=2))]
    )


@rewrite("algebra")
def contract_kronecker_factors(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """kron(a, b) @ x is one einsum of both factors with x. Assumes matrices."""
    replacement = """
        inner = _x.reshape(_a.shape[1], _b.shape[1], -1)
        torch.einsum("ij,kl,jln->ikn", _a, _b, inner).flatten(0, 1)
    """
    return replace_one(
        program, rng, [rule("torch.matmul(torch.kron(_a, _b), _x)", replacement, when=ranks(a=2, b=2, x=2))]
    )


@rewrite("fusion")
def call_mm(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """torch.matmul of matrices is torch.mm, and of batches torch.bmm, which look at no shapes. Assumes nothing."""
    rules = [
        rule("torch.matmul(_a, _b)", "torch.mm(_a, _b)", when=_is_matmul_of_matrices),
        rule("torch.matmul(_a, _b)", "torch.bmm(_a, _b)", when=_is_matmul_of_batches),
    ]
    return replace_one(program, rng, rules)


def _is_matmul_of_matrices(match: Match) -> bool:
    return _is_spelt_matmul(match) and match.rank("_a") == match.rank("_b") == 2


def _is_matmul_of_batches(match: Match) -> bool:
    a, b = match.value("_a"), match.value("_b")
    return (
        _is_spelt_matmul(match)
        and a is not None
        and b is not None
        and a.rank == b.rank == 3
        and a.shape[0] == b.shape[0]
    )


def _is_spelt_matmul(match: Match) -> bool:
    return match.site.node is not None and code_of(match.site.node).startswith("torch.matmul(")


@rewrite("memory")
def multiply_transposed(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """a @ b is (b.t() @ a.t()).t(), which writes the product by columns. Assumes matrices."""
    replacement = "torch.mm(_b.t(), _a.t()).t()"
    return replace_one(program, rng, [rule("torch.matmul(_a, _b)", replacement, when=_is_matmul_of_matrices)])


@rewrite("algebra")
def multiply_diagonals(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A product with a tridiagonal matrix is three shifted multiplications. Assumes vectors and a matrix."""
    replacement = """
        out = _a[:, None] * _x
        out[:-1] += _b[:, None] * _x[1:]
        out[1:] += _c[:, None] * _x[:-1]
        out
    """
    pattern = "torch.matmul(torch.diag(_a) + torch.diag(_b, 1) + torch.diag(_c, -1), _x)"
    return replace_one(program, rng, [rule(pattern, replacement, when=ranks(a=1, b=1, c=1, x=2))])


@rewrite("algebra")
def multiply_band(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A product with a banded matrix is a few shifted multiplications. Assumes a square matrix and a finite b."""
    replacement = """
        out = torch.diagonal(_a)[:, None] * _b
        for k in range(1, _w):
            out[:-k] += torch.diagonal(_a, k)[:, None] * _b[k:]
            out[k:] += torch.diagonal(_a, -k)[:, None] * _b[:-k]
        out
    """
    patterns = (
        "torch.matmul(torch.triu(torch.tril(_a, _n), _m), _b)",
        "torch.matmul(torch.tril(torch.triu(_a, _m), _n), _b)",
    )
    rules = [rule(pattern, replacement, when=_is_narrow_band, given=_band_width) for pattern in patterns]
    return replace_one(program, rng, rules)


def _is_narrow_band(match: Match) -> bool:
    above, below = match.number("_n"), match.number("_m")
    return _is_square(match) and above is not None and below == -above and 0 < above < 8


def _band_width(match: Match) -> dict[str, str]:
    return {"_w": repr(int(match.number("_n") or 0) + 1)}


@rewrite("algebra")
def skip_upper_blocks(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A product of lower triangular matrices is taken by rows of blocks, without the blocks that are zero.

    Assumes square matrices and finite entries.
    """
    replacement = """
        out = torch.zeros_like(_b)
        for t in range(0, _a.shape[0], 128):
            out[t:t + 128, :t + 128] = torch.matmul(_a[t:t + 128, :t + 128], _b[:t + 128, :t + 128])
        out
    """
    return replace_one(program, rng, [rule("torch.matmul(_a, _b)", replacement, when=_are_lower)])


def _are_lower(match: Match) -> bool:
    heads = {match.holes[hole].head for hole in ("_a", "_b")}
    return heads == {"tril"} and _is_square(match) and match.value("_a") == match.value("_b")


@rewrite("algebra")
def drop_outer_triangle(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A product of lower triangular matrices is lower triangular already. Assumes finite entries."""
    pattern = "torch.tril(torch.matmul(torch.tril(_a), torch.tril(_b)))"
    return replace_one(program, rng, [rule(pattern, "torch.matmul(torch.tril(_a), torch.tril(_b))", when=_is_square)])
