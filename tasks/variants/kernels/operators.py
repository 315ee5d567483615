"""Which torch operations the kernels know, and what they are in C.

NaN and infinities come out as torch has them: comparisons are written so that NaN falls into the branch that keeps it.
"""

import math
from collections.abc import Callable

from tasks.variants.kernels.nodes import Kind, Node, Number, Op, Reduce, Unsupported, operate
from tasks.variants.kernels.values import Shape, reduced

_SOFTPLUS = "({0} > 20.0f ? {0} : log1pf(expf({0})))"
UNARY = {
    "abs": "fabsf({0.bare})",
    "exp": "expf({0.bare})",
    "exp2": "exp2f({0.bare})",
    "expm1": "expm1f({0.bare})",
    "log": "logf({0.bare})",
    "log1p": "log1pf({0.bare})",
    "log2": "log2f({0.bare})",
    "sqrt": "sqrtf({0.bare})",
    "rsqrt": "1.0f / sqrtf({0.bare})",
    "sin": "sinf({0.bare})",
    "cos": "cosf({0.bare})",
    "tanh": "tanhf({0.bare})",
    "erf": "erff({0.bare})",
    "neg": "-{0}",
    "square": "{0} * {0}",
    "reciprocal": "1.0f / {0}",
    "sigmoid": "1.0f / (1.0f + expf(-{0}))",
    "logsigmoid": "({0} < 0.0f ? {0} : 0.0f) - log1pf(expf(-fabsf({0})))",
    "relu": "({0} < 0.0f ? 0.0f : {0})",
    "relu6": "({0} < 0.0f ? 0.0f : {0} > 6.0f ? 6.0f : {0})",
    "silu": "{0} / (1.0f + expf(-{0}))",
    "softplus": _SOFTPLUS,
    "mish": "{0} * tanhf" + _SOFTPLUS,
    "softsign": "{0} / (1.0f + fabsf({0}))",
    "hardswish": "{0} * ({0} < -3.0f ? 0.0f : {0} > 3.0f ? 6.0f : {0} + 3.0f) / 6.0f",
    "hardsigmoid": "({0} < -3.0f ? 0.0f : {0} > 3.0f ? 6.0f : {0} + 3.0f) / 6.0f",
    "float": "{0}",
    "clone": "{0}",
    "contiguous": "{0}",
    "detach": "{0}",
}
BINARY = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "maximum": "({0} > {1} || {0} != {0} ? {0} : {1})",
    "minimum": "({0} < {1} || {0} != {0} ? {0} : {1})",
}
COMPARISONS = {
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "logical_and": "{0} && {1}",
    "logical_or": "{0} || {1}",
}
# Losses before their reduction; the first argument is the prediction.
LOSSES: dict[str, Callable[[Node, Node], Node]] = {
    "mse_loss": lambda x, y: power(operate("{0} - {1}", x, y), 2),
    "l1_loss": lambda x, y: operate("fabsf({0.bare} - {1})", x, y),
    "smooth_l1_loss": lambda x, y: _huber(x, y),
    "huber_loss": lambda x, y: _huber(x, y),
    "binary_cross_entropy_with_logits": lambda x, y: operate(
        "({0} < 0.0f ? 0.0f : {0}) - {0} * {1} + log1pf(expf(-fabsf({0})))", x, y
    ),
}


def _huber(x: Node, y: Node) -> Node:
    distance = operate("fabsf({0.bare} - {1})", x, y)
    return operate("({0} < 1.0f ? 0.5f * {0} * {0} : {0} - 0.5f)", distance)


def gelu(x: Node, *, approximate: str) -> Node:
    if approximate == "tanh":
        return operate("0.5f * {0} * (1.0f + tanhf(0.7978845608f * ({0} + 0.044715f * {0} * {0} * {0})))", x)
    return operate("0.5f * {0} * (1.0f + erff({0} * 0.7071067812f))", x)


def clamp(x: Node, low: Node | None, high: Node | None) -> Node:
    if low is None and high is None:
        raise Unsupported("clamp without limits")
    if high is None:
        return operate("({0} < {1} ? {1} : {0})", x, low)  # type: ignore[arg-type]
    if low is None:
        return operate("({0} > {1} ? {1} : {0})", x, high)
    return operate("({0} < {1} ? {1} : {0} > {2} ? {2} : {0})", x, low, high)


def power(x: Node, exponent: float) -> Node:
    """A constant power; the small whole ones as torch has them, by multiplication."""
    known = {
        0.5: UNARY["sqrt"],
        -0.5: UNARY["rsqrt"],
        -1.0: UNARY["reciprocal"],
        1.0: "{0}",
        2.0: UNARY["square"],
        3.0: "{0} * {0} * {0}",
    }
    return operate(known[exponent], x) if exponent in known else operate("powf({0.bare}, {1.bare})", x, Number(exponent))


def reduce(name: str, x: Node, dims: object, *, keepdim: bool, unbiased: bool = True) -> Node:
    """A reduction over one dimension, over several adjacent ones, or (None) over all.

    Raises:
        Unsupported: if other dimensions are reduced, or the reduction is not known.
    """
    shape = reduced(x.shape, dims, keepdim=keepdim)
    first, stop = _block(dims, len(x.shape))
    kept = (*x.shape[:first], *(1,) * (stop - first), *x.shape[stop:])
    if shape is None or (isinstance(x, Op) and x.is_boolean):
        raise Unsupported("a count")

    def over(kind: Kind, argument: Node, kept_or_not: Shape = shape) -> Node:
        return Reduce(kind, argument, first, stop, kept_or_not)

    match name:
        case "sum":
            return over("sum", x)
        case "mean":
            return operate("{0} / m", over("sum", x))
        case "max" | "amax":
            return operate("({1} > 0.0f ? NAN : {0})", over("max", x), over("sum", operate("{0} != {0}", x)))
        case "min" | "amin":
            return operate("({1} > 0.0f ? NAN : {0})", over("min", x), over("sum", operate("{0} != {0}", x)))
        case "norm":
            return operate(UNARY["sqrt"], over("sum", power(x, 2)))
        case "var":
            distance = operate("{0} - {1}", x, operate("{0} / m", over("sum", x, kept)))
            return operate("{0} / (m - 1)" if unbiased else "{0} / m", over("sum", power(distance, 2)))
        case "logsumexp":
            exponentials = operate("expf({0.bare} - {1})", x, over("max", x, kept))
            return operate("{0} + logf({1.bare})", over("max", x), over("sum", exponentials))
    raise Unsupported(name)


def softmax(x: Node, dim: object, *, is_log: bool) -> Node:
    """Softmax by way of the maximum; that it passes over NaN does no harm, since the sum has it."""
    first, stop = _block(dim, len(x.shape))
    kept = (*x.shape[:first], *(1,) * (stop - first), *x.shape[stop:])
    distance = operate(BINARY["sub"], x, Reduce("max", x, first, stop, kept))
    exponentials = operate(UNARY["exp"], distance)
    total = Reduce("sum", exponentials, first, stop, kept)
    return operate("{0} - logf({1.bare})", distance, total) if is_log else operate(BINARY["div"], exponentials, total)


def layer_norm(x: Node, dim: int, weight: Node | None, bias: Node | None, *, eps: float) -> Node:
    distance = operate(BINARY["sub"], x, reduce("mean", x, dim, keepdim=True))
    variance = reduce("mean", power(distance, 2), dim, keepdim=True)
    out: Node = operate("{0} / sqrtf({1.bare} + {2.bare})", distance, variance, Number(eps))
    if weight is not None:
        out = operate(BINARY["mul"], out, weight)
    return out if bias is None else operate(BINARY["add"], out, bias)


def _block(dims: object, rank: int) -> tuple[int, int]:
    """The reduced dimensions as a range.

    Raises:
        Unsupported: if they are not adjacent, or none.
    """
    chosen = range(rank) if dims is None else (dims,) if isinstance(dims, int) else dims
    places = sorted(dim % rank for dim in chosen) if rank else []  # type: ignore[union-attr]
    if not places or places != list(range(places[0], places[-1] + 1)):
        raise Unsupported("a reduction over dimensions that are not adjacent")
    return places[0], places[-1] + 1
