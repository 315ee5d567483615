"""Fusion of hand-written attention, and cheaper ways to scale its scores."""

import random

import libcst as cst

from tasks.variants.rewrites.conditions import size
from tasks.variants.rewrites.matching import Match
from tasks.variants.rewrites.rules import replace_one, rule
from tasks.variants.rewriting import rewrite

_SCORES = "torch.matmul(_q, _k.mT) / math.sqrt(_q.shape[-1])"
_CAUSAL = f'torch.masked_fill({_SCORES}, torch.triu({{}}, 1) == 1, float("-inf"))'
_ONES = ("torch.ones(_n, _n)", f"torch.ones_like({_SCORES})")
_ATTENTION = "torch.matmul(torch.softmax({}, dim=-1), _v)"


def _are_heads(match: Match) -> bool:
    return match.rank("_q") in (3, 4) and match.rank("_q") == match.rank("_k") == match.rank("_v")


def _is_square(match: Match) -> bool:
    q, k = match.value("_q"), match.value("_k")
    return _are_heads(match) and q is not None and k is not None and q.shape[-2] == k.shape[-2]


def _shrinks(match: Match) -> bool:
    """Whether the left operand is smaller than the product, so that scaling it costs less."""
    product = match.view.value(match.site)
    return product is not None and match.number("_s") is not None and 0 < size(match, "_a") < _elements(product.shape)


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for each in shape:
        count *= each
    return count


@rewrite("fusion")
def call_attention(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """softmax(q @ k.mT / sqrt(d)) @ v is F.scaled_dot_product_attention. Assumes three or four dimensions.

    A mask of the future becomes is_causal, which assumes as many queries as keys.
    """
    rules = [
        rule(_ATTENTION.format(_SCORES), "F.scaled_dot_product_attention(_q, _k, _v)", when=_are_heads),
        *(
            rule(
                _ATTENTION.format(_CAUSAL.format(ones)),
                "F.scaled_dot_product_attention(_q, _k, _v, is_causal=True)",
                when=_is_square,
            )
            for ones in _ONES
        ),
    ]
    return replace_one(program, rng, rules)


@rewrite("algebra")
def scale_operand(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """(a @ b) * s is (a * s) @ b. Assumes a number s; done where a is smaller than the product."""
    rules = [
        rule("torch.matmul(_a, _b) * _s", "torch.matmul(_a * _s, _b)", when=_shrinks),
        rule("torch.matmul(_a, _b) / math.sqrt(_a.shape[-1])", "torch.matmul(_a * _a.shape[-1] ** -0.5, _b)"),
    ]
    return replace_one(program, rng, rules)


@rewrite("fusion")
def scale_inside_product(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """(a @ b) / sqrt(d) of batches is one torch.baddbmm with beta=0. Assumes three dimensions."""
    replacement = "torch.baddbmm(_a.new_zeros(1, 1, 1), _a, _b, beta=0, alpha=_a.shape[-1] ** -0.5)"
    pattern = "torch.matmul(_a, _b) / math.sqrt(_a.shape[-1])"

    return replace_one(program, rng, [rule(pattern, replacement, when=_are_batches)])


def _are_batches(match: Match) -> bool:
    return match.rank("_a") == match.rank("_b") == 3
