"""Which torch operations the kernels know, and what they are in C.

NaN and infinities come out as torch has them: comparisons are written so that NaN falls into the branch that keeps it.
"""

from collections.abc import Callable

from tasks.variants.kernels.nodes import Kind, Node, Number, Op, Reduce, Unsupported, operate, replaced, walk
from tasks.variants.kernels.values import Shape, reduced

# An extremum, and how many NaN it has passed over.
_CHECKED = "({1} > 0.0f ? NAN : {0})"
_SOFTPLUS = "({0} > 20.0f ? {0} : log1pf(expf({0})))"
UNARY = {
    "abs": "fabsf({0:0})",
    "exp": "expf({0:0})",
    "exp2": "exp2f({0:0})",
    "expm1": "expm1f({0:0})",
    "log": "logf({0:0})",
    "log1p": "log1pf({0:0})",
    "log2": "log2f({0:0})",
    "sqrt": "sqrtf({0:0})",
    "rsqrt": "1.0f / sqrtf({0:0})",
    "sin": "sinf({0:0})",
    "cos": "cosf({0:0})",
    "tanh": "tanhf({0:0})",
    "erf": "erff({0:0})",
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
    "add": "{0:1} + {1:2}",
    "sub": "{0:1} - {1:2}",
    "mul": "{0:2} * {1}",
    "div": "{0:2} / {1}",
    "maximum": "({0} > {1} || {0} != {0} ? {0} : {1})",
    "minimum": "({0} < {1} || {0} != {0} ? {0} : {1})",
}
COMPARISONS = {
    "gt": "{0:1} > {1:1}",
    "ge": "{0:1} >= {1:1}",
    "lt": "{0:1} < {1:1}",
    "le": "{0:1} <= {1:1}",
    "eq": "{0:1} == {1:1}",
    "ne": "{0:1} != {1:1}",
    "logical_and": "{0} && {1}",
    "logical_or": "{0} || {1}",
}
# Losses before their reduction; the first argument is the prediction.
LOSSES: dict[str, Callable[[Node, Node], Node]] = {
    "mse_loss": lambda x, y: power(operate("{0:1} - {1:2}", x, y), 2),
    "l1_loss": lambda x, y: operate("fabsf({0:1} - {1:2})", x, y),
    "smooth_l1_loss": lambda x, y: _huber(x, y),
    "huber_loss": lambda x, y: _huber(x, y),
    "binary_cross_entropy_with_logits": lambda x, y: operate(
        "({0} < 0.0f ? 0.0f : {0}) - {0} * {1} + log1pf(expf(-fabsf({0})))", x, y
    ),
}


def _huber(x: Node, y: Node) -> Node:
    distance = operate("fabsf({0:1} - {1:2})", x, y)
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


def bent(x: Node, *settings: float) -> Node:
    """A leaky ReLU of one slope, or a hard tanh between two limits."""
    if len(settings) == 1:
        return operate("({0} < 0.0f ? {0} * {1} : {0})", x, Number(*settings))
    return clamp(x, *map(Number, settings))


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
    return operate(known[exponent], x) if exponent in known else operate("powf({0:0}, {1:0})", x, Number(exponent))


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
            return operate("{0:2} / m", over("sum", x))
        case "max" | "amax":
            return operate(_CHECKED, over("max", x), over("sum", operate("{0} != {0}", x)))
        case "min" | "amin":
            return operate(_CHECKED, over("min", x), over("sum", operate("{0} != {0}", x)))
        case "norm":
            return operate(UNARY["sqrt"], over("sum", power(x, 2)))
        case "var":
            distance = operate("{0:1} - {1:2}", x, operate("{0:2} / m", over("sum", x, kept)))
            return operate("{0:2} / (m - 1)" if unbiased else "{0:2} / m", over("sum", power(distance, 2)))
        case "logsumexp":
            exponentials = operate("expf({0:1} - {1:2})", x, over("max", x, kept))
            return operate("{0} + logf({1:0})", over("max", x), over("sum", exponentials))
    raise Unsupported(name)


def softmax(x: Node, dim: object, *, is_log: bool) -> Node:
    """Softmax by way of the maximum; that it passes over NaN does no harm, since the sum has it."""
    first, stop = _block(dim, len(x.shape))
    kept = (*x.shape[:first], *(1,) * (stop - first), *x.shape[stop:])
    distance = operate(BINARY["sub"], x, Reduce("max", x, first, stop, kept))
    exponentials = operate(UNARY["exp"], distance)
    total = Reduce("sum", exponentials, first, stop, kept)
    return operate("{0:1} - logf({1:0})", distance, total) if is_log else operate(BINARY["div"], exponentials, total)


def without_needless_checks(root: Node) -> Node:
    """The tree without looking for NaN in maxima that a softmax by hand subtracts: its sum has the NaN anyway."""
    distances = {
        node.argument.arguments[0]
        for node in walk(root)
        if isinstance(node, Reduce) and isinstance(node.argument, Op) and node.argument.template == UNARY["exp"]
    }
    needless: dict[Node, Node] = {}
    for distance in distances:
        match distance:
            case Op(template="{0:1} - {1:2}", arguments=(x, Op(arguments=(Reduce() as top, _)) as checked)):
                if checked.template == _CHECKED and top.argument == x:
                    needless[checked] = top
    return replaced(root, needless)


def layer_norm(x: Node, dim: int, weight: Node | None, bias: Node | None, *, eps: float) -> Node:
    distance = operate(BINARY["sub"], x, reduce("mean", x, dim, keepdim=True))
    variance = reduce("mean", power(distance, 2), dim, keepdim=True)
    out: Node = operate("{0:2} / sqrtf({1:1} + {2:1})", distance, variance, Number(eps))
    if weight is not None:
        out = operate(BINARY["mul"], out, weight)
    return out if bias is None else operate(BINARY["add"], out, bias)


def _block(dims: object, rank: int) -> tuple[int, int]:
    """The reduced dimensions as a range.

    Raises:
        Unsupported: if they are not adjacent, or none.
    """
    if dims is None:
        return 0, rank
    chosen = dims if isinstance(dims, tuple) else (dims,)
    places = sorted(dim % rank for dim in chosen if isinstance(dim, int)) if rank else []
    if not places or places != list(range(places[0], places[-1] + 1)):
        raise Unsupported("a reduction over dimensions that are not adjacent")
    return places[0], places[-1] + 1
