"""Which expressions of a forward give their results memory of its own."""

import libcst as cst

from tasks.variants.names import words
from tasks.variants.rewrites.reading import dotted_name
from tasks.variants.rewrites.signatures import function_head
from tasks.variants.rewrites.view import View

ENTRYWISE_METHODS = words("relu sigmoid tanh exp log sqrt rsqrt abs neg cos sin clamp square log1p expm1 erf lgamma")
WITH_INPLACE_FLAG = words("silu hardswish mish hardsigmoid relu")
_NEW = (
    ENTRYWISE_METHODS
    | WITH_INPLACE_FLAG
    | words(
        "matmul linear conv2d softmax log_softmax layer_norm group_norm instance_norm rms_norm baddbmm addmm "
        "lerp cumsum sum mean amax softplus gelu pow masked_fill where stack cat gather cdist flip zeros_like "
        "ones_like maximum minimum tril triu scaled_dot_product_attention einsum kron digamma batch_norm addcmul"
    )
)


def is_new(node: cst.BaseExpression, view: View) -> bool:
    """Whether an expression's result is in memory of its own."""
    if isinstance(node, cst.BinaryOperation):
        return True
    function = dotted_name(node.func) if isinstance(node, cst.Call) else None
    if function in view.modules:
        return view.modules[function].head in ("nn.Linear", "nn.Conv2d", "nn.LayerNorm")
    name = function_of(node)[0]
    return name in _NEW or name == "clone"


def function_of(node: cst.BaseExpression) -> tuple[str, cst.BaseExpression | None, list[cst.Arg]]:
    """Name, first operand and other arguments of a function or method of tensors."""
    if not isinstance(node, cst.Call) or any(each.star for each in node.args):
        return "", None, []
    dotted = dotted_name(node.func)
    if dotted and dotted.split(".")[0] in ("torch", "F"):
        return function_head(dotted), node.args[0].value if node.args else None, list(node.args[1:])
    if isinstance(node.func, cst.Attribute) and not (dotted or "").startswith("self."):
        return node.func.attr.value, node.func.value, list(node.args)
    return "", None, []
