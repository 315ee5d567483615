"""Algebra and fusion of entrywise operations: cheaper powers and divisions, gathered scalars, fused triples."""

import random

import libcst as cst

from tasks.variants.rewrites.conditions import both, fits, numbers, tensors
from tasks.variants.rewrites.matching import Match
from tasks.variants.rewrites.rules import replace_one, rule
from tasks.variants.rewrites.terms import Term
from tasks.variants.rewriting import rewrite

_DIFFERENCE = "torch.abs(_a - _b)"
_LOG_RATIO = "torch.log(_p) - torch.log(_q)"


def _is_pow_call(match: Match) -> bool:
    return isinstance(match.site.node, cst.Call) or isinstance(getattr(match.site.node, "operator", None), cst.Power)


def _is_name(match: Match) -> bool:
    return isinstance(match.holes["_x"].node, cst.Name) and _is_pow_call(match)


def _divides_by_number(match: Match) -> bool:
    node = match.site.node
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide) and not match.rest


def _divides(match: Match) -> bool:
    return _divides_by_number(match) and match.number("_y") is None


def _reciprocal(match: Match) -> dict[str, str]:
    return {"_r": repr(match.number("_s"))}


def _is_positive(match: Match) -> bool:
    return all(_is_surely_positive(match.holes[hole]) for hole in ("_p", "_q"))


def _is_surely_positive(term: Term) -> bool:
    if term.head == "clamp":
        return (term.args[1].number or 0) > 0
    return term.head in ("softmax", "exp", "softplus")


def _is_clamped(match: Match) -> bool:
    return match.holes["_p"].head == "clamp" and _is_positive(match)


@rewrite("algebra")
def multiply_out_power(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """pow(x, 2) is x * x and pow(x, 3) is x * x * x. Assumes nothing."""
    rules = [
        rule("_x ** 3", "_x * _x * _x", when=_is_name),
        rule("_x ** 2", "_x * _x", when=_is_name),
        rule("_x ** 2", "torch.square(_x)", when=_is_pow_call),
    ]
    return replace_one(program, rng, rules)


@rewrite("algebra")
def multiply_by_reciprocal(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Division by a number is multiplication by its reciprocal. Assumes a number known from the text."""
    return replace_one(
        program, rng, [rule("_x * _s", "_x * _r", when=both(_divides_by_number, _is_literal), given=_reciprocal)]
    )


def _is_literal(match: Match) -> bool:
    return match.holes["_s"].number is not None and match.number("_x") is None


@rewrite("algebra")
def divide_by_root_once(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """x / sqrt(y) is x * rsqrt(y). Assumes a tensor y; pays where y is smaller than x."""
    return replace_one(program, rng, [rule("_x / torch.sqrt(_y)", "_x * torch.rsqrt(_y)", when=_roots_tensor)])


def _roots_tensor(match: Match) -> bool:
    return match.rank("_y") is not None and match.number("_y") is None


@rewrite("algebra")
def divide_by_multiplying(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """x / y is x * (1 / y) where y is broadcast, so that fewer entries are divided. Assumes nothing but rounding."""
    return replace_one(program, rng, [rule("_x / _y", "_x * torch.reciprocal(_y)", when=both(_divides, _broadcasts))])


def _broadcasts(match: Match) -> bool:
    x, y = match.value("_x"), match.value("_y")
    return x is not None and y is not None and x.rank == y.rank and x.shape != y.shape


@rewrite("algebra")
def one_logarithm(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """log(p) - log(q) is log(p / q). Assumes positive p and q whose ratio fp32 can hold."""
    return replace_one(program, rng, [rule(_LOG_RATIO, "torch.log(_p / _q)", when=_is_positive)])


@rewrite("fusion")
def call_kl_div(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """p * (log(p) - log(q)) is F.kl_div, also with logarithms given. Assumes a positive p, which is clamped."""
    rules = [
        rule("torch.exp(_p) * (_p - _q)", 'F.kl_div(_q, _p, reduction="none", log_target=True)'),
        rule(f"_p * ({_LOG_RATIO})", 'F.kl_div(torch.log(_q), _p, reduction="none")', when=_is_clamped),
    ]
    return replace_one(program, rng, rules)


@rewrite("fusion")
def call_smooth_l1_loss(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """d * d / 2 below 1 and d - 1/2 above, with d = |a - b|, is F.smooth_l1_loss. Assumes equal shapes."""
    pattern = f"torch.where({_DIFFERENCE} < 1.0, 0.5 * {_DIFFERENCE} ** 2, {_DIFFERENCE} - 0.5)"
    return replace_one(
        program, rng, [rule(pattern, 'F.smooth_l1_loss(_a, _b, reduction="none")', when=fits("a", into="b"))]
    )


@rewrite("algebra")
def select_by_clamping(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The Huber loss of d is c * (d - c / 2) with c = min(d, 1): nothing is selected. Assumes d is not negative."""
    pattern = f"torch.where({_DIFFERENCE} < 1.0, 0.5 * {_DIFFERENCE} ** 2, {_DIFFERENCE} - 0.5)"
    replacement = """
        diff = torch.abs(_a - _b)
        small = torch.clamp(diff, max=1.0)
        small * (diff - 0.5 * small)
    """
    return replace_one(program, rng, [rule(pattern, replacement)])


@rewrite("fusion")
def call_avg_pool(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The mean of the four corners of every two by two window is F.avg_pool2d. Assumes pictures of even size."""
    corners = [f"_x[:, :, {i}::2, {j}::2]" for i in (0, 1) for j in (0, 1)]
    return replace_one(program, rng, [rule(f"({' + '.join(corners)}) / 4.0", "F.avg_pool2d(_x, 2)", when=_is_even)])


def _is_even(match: Match) -> bool:
    x = match.value("_x")
    return x is not None and x.rank == 4 and x.shape[2] % 2 == 0 and x.shape[3] % 2 == 0


@rewrite("fusion")
def call_addcmul(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """a + b * c is torch.addcmul. Assumes tensors; done where a has the shape of the result."""
    added = rule(
        "_a + _b * _c",
        "torch.addcmul(_a, _b, _c)",
        when=both(tensors("a", "b", "c"), fits("b", into="a"), fits("c", into="a")),
    )
    return replace_one(program, rng, [added])


@rewrite("fusion")
def call_lerp(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """(1 - w) * a + w * b is torch.lerp. Assumes tensors a and b."""
    mixed = rule("(1.0 - _w) * _a + _w * _b", "torch.lerp(_a, _b, _w)", when=tensors("a", "b"))
    return replace_one(program, rng, [mixed])


@rewrite("algebra")
def factor_out(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """w * a + w * b is w * (a + b), and (1 - w) * a + w * b is a + w * (b - a). Assumes nothing but rounding."""
    rules = [
        rule("(1.0 - _w) * _a + _w * _b", "_a + _w * (_b - _a)"),
        rule("_w * _a + _w * _b", "_w * (_a + _b)", when=_shares_tensor),
    ]
    return replace_one(program, rng, rules)


def _shares_tensor(match: Match) -> bool:
    return match.holes["_w"].number is None


@rewrite("algebra")
def gather_scale(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """x * s + x is x * (s + 1). Assumes a number s."""
    return replace_one(program, rng, [rule("_x * _s + _x", "_x * _t", when=numbers("s"), given=_plus_one)])


def _plus_one(match: Match) -> dict[str, str]:
    return {"_t": repr(1 + (match.number("_s") or 0))}
