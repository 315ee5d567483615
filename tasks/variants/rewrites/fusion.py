"""Several operations into one library call."""

import random

import libcst as cst

from tasks.variants.rewrites.matching import Match
from tasks.variants.rewrites.rules import replace_one, rule
from tasks.variants.rewrites.shapes import broadcast_shape
from tasks.variants.rewriting import rewrite


def _exponentials(shifted: str) -> str:
    return f"torch.exp({shifted}) / torch.sum(torch.exp({shifted}), dim=_d, keepdim=True)"


_SHIFTED = "_x - torch.amax(_x, dim=_d, keepdim=True)"
_SCORES = "torch.matmul(_q, _k.mT)"
_ROOT = "math.sqrt(_q.shape[-1])"
_FUTURE = "torch.triu(torch.ones(_n, _m), diagonal=1) == 1"


def _is_heads(match: Match) -> bool:
    return match.rank("_q") in (3, 4) and match.rank("_k") == match.rank("_q") == match.rank("_v")


def _are_matrices(match: Match) -> bool:
    return match.rank("_a") == 2 and match.rank("_b") == 2 and _fits_product(match)


def _are_batches(match: Match) -> bool:
    return match.rank("_a") == 3 and match.rank("_b") == 3 and _fits_product(match)


def _fits_product(match: Match) -> bool:
    """Whether the added tensor can be broadcast to the product, so that the result has the product's shape."""
    a, b, c = (match.value(hole) for hole in ("_a", "_b", "_c"))
    if a is None or b is None or c is None or c.number is not None:
        return False
    shape = (*a.shape[:-1], b.shape[-1])
    return broadcast_shape(shape, c.shape) == shape


def _scales(match: Match) -> bool:
    return match.number("_s") is not None


@rewrite("fusion")
def call_softmax(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """exp(x - max) over its sum is torch.softmax. Assumes nothing: both subtract the largest entry."""
    return replace_one(program, rng, [rule(_exponentials(_SHIFTED), "torch.softmax(_x, dim=_d)")])


@rewrite("fusion")
def call_log_softmax(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """x - max - log(sum(exp(x - max))) is torch.log_softmax. Assumes nothing."""
    pattern = f"{_SHIFTED} - torch.log(torch.sum(torch.exp({_SHIFTED}), dim=_d, keepdim=True))"
    return replace_one(program, rng, [rule(pattern, "torch.log_softmax(_x, dim=_d)")])


@rewrite("fusion")
def call_cross_entropy(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The gathered negative log-softmax is F.cross_entropy. Assumes a matrix and no target of -100."""
    logs = f"{_SHIFTED} - torch.log(torch.sum(torch.exp({_SHIFTED}), dim=_d, keepdim=True))"
    replacement = 'F.cross_entropy(_x, _y, reduction="none")[:, None]'

    def fits(match: Match) -> bool:
        return match.rank("_x") == 2 and match.rank("_y") == 1

    rules = [
        rule(f"-torch.gather({inner}, 1, _y[:, None])", replacement, when=fits)
        for inner in (logs, "torch.log_softmax(_x, dim=_d)")
    ]
    return replace_one(program, rng, rules)
