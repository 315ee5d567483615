"""Fusion of hand-written activations and softmaxes into the library's own."""

import random

import libcst as cst

from tasks.variants.rewrites.conditions import ranks
from tasks.variants.rewrites.matching import Match, unify
from tasks.variants.rewrites.reading import code_of
from tasks.variants.rewrites.rules import replace_one, rule
from tasks.variants.rewrites.terms import expression_of
from tasks.variants.rewriting import rewrite

SHIFTED = "_x - torch.amax(_x, dim=_d, keepdim=True)"
EXPONENTIALS = f"torch.sum(torch.exp({SHIFTED}), dim=_d, keepdim=True)"
_SOFTPLUS = ("torch.log(1.0 + torch.exp(-torch.abs(_x))) + torch.relu(_x)", "F.softplus(_x)")


@rewrite("fusion")
def call_silu(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """x * sigmoid(x) is F.silu(x). Assumes nothing."""
    return replace_one(program, rng, [rule("_x * torch.sigmoid(_x)", "F.silu(_x)")])


@rewrite("fusion")
def call_gelu(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Both forms of GELU, with tanh and with erf, are F.gelu. Assumes nothing."""
    cubic = "math.sqrt(2.0 / math.pi) * (_x + 0.044715 * _x ** 3)"
    rules = [
        rule(f"0.5 * _x * (1.0 + torch.tanh({cubic}))", 'F.gelu(_x, approximate="tanh")'),
        rule("0.5 * _x * (1.0 + torch.erf(_x / math.sqrt(2.0)))", "F.gelu(_x)"),
    ]
    return replace_one(program, rng, rules)


@rewrite("fusion")
def call_softplus(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """log(1 + exp(-|x|)) + relu(x) is F.softplus(x). Assumes nothing: F.softplus does not overflow either."""
    return replace_one(program, rng, [rule(*_SOFTPLUS)])


@rewrite("fusion")
def call_mish(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """x * tanh(softplus(x)) is F.mish(x). Assumes nothing."""
    rules = [rule(f"_x * torch.tanh({softplus})", "F.mish(_x)") for softplus in (_SOFTPLUS[0], "F.softplus(_x)")]
    return replace_one(program, rng, rules)


@rewrite("fusion")
def call_hardswish(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """x * clamp(x + 3, 0, 6) / 6 is F.hardswish(x). Assumes nothing."""
    rules = [
        rule("_x * torch.clamp(_x + 3.0, 0.0, 6.0) / 6.0", "F.hardswish(_x)"),
        rule("_x * (F.relu6(_x + 3.0) / 6.0)", "F.hardswish(_x)"),
    ]
    return replace_one(program, rng, rules)


@rewrite("fusion")
def call_hardsigmoid(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """clamp(x + 3, 0, 6) / 6 is F.hardsigmoid(x). Assumes nothing."""
    return replace_one(program, rng, [rule("torch.clamp(_x + 3.0, 0.0, 6.0) / 6.0", "F.hardsigmoid(_x)")])


@rewrite("fusion")
def call_sigmoid(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """1 / (1 + exp(-x)) is torch.sigmoid(x). Assumes nothing."""
    return replace_one(program, rng, [rule("1.0 / (1.0 + torch.exp(-_x))", "torch.sigmoid(_x)")])


@rewrite("fusion")
def call_softmax(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """exp(x - max) over its sum is torch.softmax. Assumes nothing: both subtract the largest entry."""
    return replace_one(program, rng, [rule(f"torch.exp({SHIFTED}) / {EXPONENTIALS}", "torch.softmax(_x, dim=_d)")])


@rewrite("fusion")
def call_log_softmax(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """x - log(sum(exp(x))) is torch.log_softmax, with x shifted or not. Assumes exponentials without overflow."""
    shift = "_z - torch.log(torch.sum(torch.exp(_z), dim=_d, keepdim=True))"
    rules = [
        rule(f"{SHIFTED} - torch.log({EXPONENTIALS})", "torch.log_softmax(_x, dim=_d)"),
        rule(shift, "torch.log_softmax(_x, dim=_d)", given=_unshifted),
    ]
    return replace_one(program, rng, rules)


def _unshifted(match: Match) -> dict[str, str]:
    """Text of x where what is normalised is x minus its maximum."""
    shifted = match.holes["_z"]
    for found, _, _ in unify(rule(SHIFTED, "_x").pattern, shifted):
        return {"_x": code_of(expression_of(found["_x"]))}
    return {"_x": code_of(expression_of(shifted))}


@rewrite("fusion")
def call_cross_entropy(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The gathered negative log-softmax is F.cross_entropy. Assumes that no target is -100, which it would ignore."""
    rules = [
        rule(
            f"-torch.gather({logs}, -1, _y[:, None])",
            'F.cross_entropy(_x, _y, reduction="none")[:, None]',
            when=ranks(x=2, y=1),
        )
        for logs in (f"{SHIFTED} - torch.log({EXPONENTIALS})", "torch.log_softmax(_x, dim=-1)")
    ]
    return replace_one(program, rng, rules)


@rewrite("algebra")
def gather_before_normalising(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """One entry of log_softmax is that entry minus logsumexp, so only a column is subtracted. Assumes nothing."""
    rules = [
        rule(
            f"torch.gather({logs}, -1, _y)",
            "torch.gather(_x, -1, _y) - torch.logsumexp(_x, dim=-1, keepdim=True)",
        )
        for logs in (f"{SHIFTED} - torch.log({EXPONENTIALS})", "torch.log_softmax(_x, dim=-1)")
    ]
    return replace_one(program, rng, rules)
