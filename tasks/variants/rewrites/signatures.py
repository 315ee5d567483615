"""What torch's functions are called in terms, in which order their arguments come, and what may be left out."""

from collections.abc import Mapping, Sequence

import libcst as cst

from tasks.variants.rewrites.terms import Term, leaf

MODULES = ("torch.nn.functional.", "nn.functional.", "torch.special.", "torch.", "F.")
"""Prefixes that are dropped from a function's name, longest first."""

OPERATORS: dict[type[cst.CSTNode], str] = {
    cst.MatrixMultiply: "matmul",
    cst.FloorDivide: "floordiv",
    cst.Modulo: "mod",
    cst.BitAnd: "and",
    cst.BitOr: "or",
    cst.LessThan: "lt",
    cst.LessThanEqual: "le",
    cst.GreaterThan: "gt",
    cst.GreaterThanEqual: "ge",
    cst.Equal: "eq",
    cst.NotEqual: "ne",
}

SYNONYMS = {
    "mm": "matmul",
    "bmm": "matmul",
    "mv": "matmul",
    "t": "mT",
    "T": "mT",
    "multiply": "mul",
    "subtract": "sub",
    "divide": "div",
    "true_divide": "div",
    "negative": "neg",
    "absolute": "abs",
    "clip": "clamp",
    "expit": "sigmoid",
    "concat": "cat",
    "view": "reshape",
    "greater": "gt",
    "less": "lt",
    "swapaxes": "transpose",
    "math.sqrt": "sqrt",
}

SIGNATURES: dict[str, tuple[str, ...]] = {
    "amax": ("input", "dim", "keepdim"),
    "amin": ("input", "dim", "keepdim"),
    "cat": ("tensors", "dim"),
    "batch_norm": ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"),
    "clamp": ("input", "min", "max"),
    "conv2d": ("input", "weight", "bias", "stride", "padding", "dilation", "groups"),
    "gather": ("input", "dim", "index"),
    "cross_entropy": ("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction"),
    "cumprod": ("input", "dim"),
    "cumsum": ("input", "dim"),
    "diag": ("input", "diagonal"),
    "flatten": ("input", "start_dim", "end_dim"),
    "flip": ("input", "dims"),
    "gelu": ("input", "approximate"),
    "linear": ("input", "weight", "bias"),
    "log_softmax": ("input", "dim"),
    "logsumexp": ("input", "dim", "keepdim"),
    "max": ("input", "dim", "keepdim"),
    "mean": ("input", "dim", "keepdim"),
    "min": ("input", "dim", "keepdim"),
    "prod": ("input", "dim", "keepdim"),
    "roll": ("input", "shifts", "dims"),
    "softmax": ("input", "dim"),
    "squeeze": ("input", "dim"),
    "stack": ("tensors", "dim"),
    "std": ("input", "dim", "unbiased", "keepdim"),
    "sum": ("input", "dim", "keepdim"),
    "transpose": ("input", "dim0", "dim1"),
    "tril": ("input", "diagonal"),
    "triu": ("input", "diagonal"),
    "unsqueeze": ("input", "dim"),
    "var": ("input", "dim", "unbiased", "keepdim"),
    "where": ("condition", "input", "other"),
}

DEFAULTS = {
    "keepdim": "False",
    "diagonal": "0",
    "approximate": '"none"',
    "end_dim": "-1",
    "bias": "None",
    "min": "None",
    "max": "None",
    "dim": "None",
}
"""Values that a trailing argument has when it is not written."""

MODULE_FUNCTIONS = {
    "nn.ReLU": "relu",
    "nn.Sigmoid": "sigmoid",
    "nn.Tanh": "tanh",
    "nn.SiLU": "silu",
    "nn.GELU": "gelu",
    "nn.Softplus": "softplus",
    "nn.Mish": "mish",
    "nn.Hardswish": "hardswish",
    "nn.Softmax": "softmax",
    "nn.LogSoftmax": "log_softmax",
    "nn.Flatten": "flatten",
    "nn.Identity": "identity",
}
"""Modules without parameters, and the function their call is; their constructor's arguments follow the input."""


def function_head(dotted: str) -> str:
    """The name a function goes by in terms: torch.mm is "matmul", F.relu is "relu", nn.Linear stays."""
    for module in MODULES:
        if dotted.startswith(module):
            name = dotted.removeprefix(module)
            return SYNONYMS.get(name, name)
    return SYNONYMS.get(dotted, dotted)


def arguments_in_order(head: str, args: Sequence[Term], named: Mapping[str, Term]) -> list[Term]:
    """Keyword arguments put where the signature has them; those it does not know become terms of their own."""
    order = SIGNATURES.get(head, ())
    result, rest = list(args), dict(named)
    for name in order[len(args) :]:
        result.append(rest.pop(name, _NO_ARGUMENT))
    while result and len(result) <= len(order) and len(result) > 1 and _is_default(order[len(result) - 1], result[-1]):
        result.pop()
    return [*result, *(Term(f"={name}", (value,)) for name, value in sorted(rest.items()))]


def _is_default(name: str, value: Term) -> bool:
    default = DEFAULTS.get(name)
    if value.head == "None":
        return True
    return default is not None and default in (value.head, repr(value.number) if value.number is not None else "")


_NO_ARGUMENT = leaf("None")
