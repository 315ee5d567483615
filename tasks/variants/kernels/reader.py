"""Reads Python expressions as trees of what C can compute; what it cannot is a leaf if its shape is known."""

import ast
import math
from collections.abc import Mapping
from typing import Literal

from tasks.variants.kernels import operators
from tasks.variants.kernels.calls import Call, layer_called, torch_call
from tasks.variants.kernels.nodes import Leaf, Node, Number, Op, Reduce, Unsupported, Window, contains, operate
from tasks.variants.kernels.results import convolved, has_bias, pooled
from tasks.variants.kernels.shapes import Shapes
from tasks.variants.kernels.values import Layer, Shape, is_number

_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Gt: "gt", ast.GtE: "ge", ast.Lt: "lt", ast.LtE: "le", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
_LAYERS = {
    "ReLU": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "SiLU": "silu", "Mish": "mish", "Softplus": "softplus",
    "Hardswish": "hardswish", "ReLU6": "relu6", "Softsign": "softsign", "Identity": "clone",
}  # fmt: skip
# Functions of straight pieces, with their settings.
_BENT = {"LeakyReLU": {"negative_slope": 0.01}, "Hardtanh": {"min_val": -1.0, "max_val": 1.0}}
_REDUCTIONS = {"sum", "mean", "max", "min", "amax", "amin", "norm", "var", "logsumexp"}


class Reader:
    """Reads expressions in a place where some names stand for trees already read."""

    def __init__(self, shapes: Shapes, nodes: Mapping[str, Node], *, windows: bool = False) -> None:
        """Read with these shapes and trees; either reductions or, with `windows`, those layers: others are leaves."""
        self.shapes = shapes
        self.nodes = nodes
        self._windows = windows

    def read(self, expression: ast.expr) -> Node:
        """The tree of an expression.

        Raises:
            Unsupported: if part of it is unknown in shape, or C would compute something else.
        """
        if isinstance(expression, ast.Name) and expression.id in self.nodes:
            return self.nodes[expression.id]
        try:
            node = self._operation(expression)
        except Unsupported:
            node = None
        if node is None or (self._windows and contains(node, Reduce)):
            return self._leaf(expression)
        return node

    def _leaf(self, expression: ast.expr) -> Node:
        value = self.shapes.of(expression)
        if is_number(value):
            named = any(isinstance(part, ast.Attribute | ast.Subscript | ast.Name) for part in ast.walk(expression))
            text = ast.unparse(expression)
            is_constant = not named or text in ("math.pi", "math.e", "math.inf")
            return Number(float(value)) if is_constant else Leaf(f"torch.tensor(float({text}))", ())  # type: ignore[arg-type]
        shape = self.shapes.shape(expression)
        if shape is None:
            raise Unsupported(f"{ast.unparse(expression)}: its shape is not known")
        names = [part.id for part in ast.walk(expression) if isinstance(part, ast.Name)]
        if any(isinstance(node := self.nodes.get(name), Op) and not node.arguments for name in names):
            raise Unsupported(f"{ast.unparse(expression)}: it changes from turn to turn of a loop")
        return Leaf(ast.unparse(expression), shape)

    def _operation(self, expression: ast.expr) -> Node | None:
        """The tree of an operation that C knows, or None for anything else."""
        if is_number(self.shapes.of(expression)):
            return None
        match expression:
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return operators.power(self.read(left), self._constant(right))
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
                template = operators.BINARY[_ARITHMETIC[type(operator)]]
                return operate(template, self.read(left), self.read(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return operate(operators.UNARY["neg"], self.read(operand))
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARISONS:
                return self._comparison(_COMPARISONS[type(operator)], left, right)
            case (
                ast.Attribute(value=ast.Call() as inner, attr="values")
                | ast.Subscript(value=ast.Call() as inner, slice=ast.Constant(value=0))
            ):
                return self._extremum(torch_call(inner))
            case ast.Call():
                call = torch_call(expression)
                layer = self._layer(expression)
                return layer if layer is not None or call is None else self._function(call)
        return None

    def _comparison(self, name: str, left: ast.expr, right: ast.expr) -> Node:
        return operate(operators.COMPARISONS[name], self.read(left), self.read(right), is_boolean=True)

    def _function(self, call: Call) -> Node | None:
        if "out" in call.keywords or "dtype" in call.keywords or not call.operands:
            return None
        name, words = call.name, call.keywords
        if name in operators.UNARY and len(call.operands) == 1 and not set(words) - {"inplace"}:
            return operate(operators.UNARY[name], self.read(call.operands[0]))
        if name in ("expand_as", "expand"):
            return self.read(call.operands[0])
        if name in ("zeros_like", "ones_like") and len(call.operands) == 1:
            return Number(float(name == "ones_like"), self.read(call.operands[0]).shape)
        if name in operators.BINARY and len(call.operands) == 2 and not words:
            return operate(operators.BINARY[name], *(self.read(operand) for operand in call.operands))
        if name in operators.COMPARISONS and len(call.operands) == 2:
            return self._comparison(name, *call.operands)
        if name in operators.LOSSES and len(call.operands) == 2:
            return self._loss(call)
        if name in _REDUCTIONS:
            # With a dimension, these two return a pair.
            is_pair = name in ("max", "min") and call.argument(1, "dim") is not None
            return None if is_pair else self._reduction(call)
        return self._special(call)

    def _special(self, call: Call) -> Node | None:
        operands = call.operands
        match call.name:
            case "pow" if len(operands) == 2:
                return operators.power(self.read(operands[0]), self._constant(operands[1]))
            case "gelu":
                approximate = self.shapes.of(call.argument(1, "approximate")) or "none"
                return operators.gelu(self.read(operands[0]), approximate=str(approximate))
            case "clamp" | "clip":
                low, high = call.argument(1, "min"), call.argument(2, "max")
                limits = [None if limit is None else self.read(limit) for limit in (low, high)]
                return operators.clamp(self.read(operands[0]), *limits)
            case "leaky_relu" | "hardtanh":
                defaults = _BENT["LeakyReLU" if call.name == "leaky_relu" else "Hardtanh"]
                given = [call.argument(place, word) for place, word in enumerate(defaults, start=1)]
                values = [
                    one if each is None else self._constant(each)
                    for each, one in zip(given, defaults.values(), strict=True)
                ]
                return operators.bent(self.read(operands[0]), *values)
            case "where" if len(operands) == 3:
                return operate("({0:0} ? {1:1} : {2:1})", *(self.read(operand) for operand in operands))
            case "masked_fill" if len(operands) == 3:
                kept, mask, filling = (self.read(operand) for operand in operands)
                return operate("({0:0} ? {1:1} : {2:1})", mask, filling, kept)
            case "softmax" | "log_softmax":
                dim = self.shapes.of(call.argument(1, "dim"))
                if not isinstance(dim, int):
                    raise Unsupported(f"a {call.name} over unknown dimensions")
                return operators.softmax(self.read(operands[0]), dim, is_log=call.name == "log_softmax")
            case "batch_norm" if len(operands) == 5 and set(call.keywords) <= {"eps"}:
                return self._batch_norm(call)
        return None

    def _extremum(self, call: Call | None) -> Node | None:
        """The first of the pair that max and min along a dimension return."""
        is_pair = call is not None and call.name in ("max", "min") and call.argument(1, "dim") is not None
        return self._reduction(call) if call is not None and is_pair else None

    def _reduction(self, call: Call) -> Node:
        place = 2 if call.name == "norm" else 1
        dims, keepdim = call.argument(place, "dim"), call.argument(place + 1, "keepdim")
        known = None if dims is None else self.shapes.of(dims)
        unbiased = self.shapes.of(call.keywords.get("unbiased")) is not False
        order = call.argument(1, "p") if call.name == "norm" else None
        is_other_norm = order is not None and self.shapes.of(order) != "fro" and self._constant(order) != 2.0
        is_other_var = call.name == "var" and len(call.operands) > 2
        known_words = {"dim", "keepdim", "p" if call.name == "norm" else "unbiased"}
        if is_other_norm or is_other_var or set(call.keywords) - known_words:
            raise Unsupported(f"this form of {call.name}")
        if dims is not None and not (isinstance(known, int) or (isinstance(known, tuple) and None not in known)):
            raise Unsupported("a reduction over unknown dimensions")
        x = self.read(call.operands[0])
        return operators.reduce(call.name, x, known, keepdim=self.shapes.of(keepdim) is True, unbiased=unbiased)

    def _loss(self, call: Call) -> Node:
        x, y = (self.read(operand) for operand in call.operands)
        reduction = self.shapes.of(call.keywords.get("reduction")) or "mean"
        if set(call.keywords) - {"reduction"} or x.shape != y.shape:
            raise Unsupported(f"this form of {call.name}")
        loss = operators.LOSSES[call.name](x, y)
        return loss if reduction == "none" else operators.reduce(str(reduction), loss, None, keepdim=False)

    def _batch_norm(self, call: Call) -> Node:
        x = self.read(call.operands[0])
        trailing = len(x.shape) - 2
        per_channel = []
        for operand in call.operands[1:]:
            leaf = self.read(operand)
            if not isinstance(leaf, Leaf):
                raise Unsupported("computed statistics")
            per_channel.append(Leaf(leaf.text, (*leaf.shape, *(1,) * trailing)))
        mean, variance, weight, bias = per_channel
        eps = Number(self._constant(call.keywords["eps"]) if "eps" in call.keywords else 1e-5)
        return operate("({0} - {1}) / sqrtf({2:1} + {3:1}) * {4} + {5}", x, mean, variance, eps, weight, bias)

    def _layer(self, expression: ast.Call) -> Node | None:
        name = layer_called(expression)
        layer = self.shapes.values.get(name) if name else None
        if not isinstance(layer, Layer) or len(expression.args) != 1:
            return None
        if layer.kind in _LAYERS and not layer.arguments and not layer.keywords:
            return operate(operators.UNARY[_LAYERS[layer.kind]], self.read(expression.args[0]))
        if layer.kind in _BENT:
            defaults = _BENT[layer.kind]
            named = {**defaults, **dict(zip(defaults, layer.arguments, strict=False)), **dict(layer.keywords)}
            values = [named[word] for word in defaults]
            is_known = all(map(is_number, values)) and len(layer.arguments) <= len(defaults)
            if not is_known or set(named) - {*defaults, "inplace"} or named.get("inplace"):
                return None
            return operators.bent(self.read(expression.args[0]), *map(float, values))  # type: ignore[arg-type]
        if layer.kind == "GELU" and not layer.arguments and not layer.keywords:
            return operators.gelu(self.read(expression.args[0]), approximate="none")
        if layer.kind == "LayerNorm" and len(layer.arguments) == 1 and {w for w, _ in layer.keywords} <= {"eps"}:
            x = self.read(expression.args[0])
            weight, bias = (Leaf(f"{name}.{part}", x.shape[-1:]) for part in ("weight", "bias"))
            eps = dict(layer.keywords).get("eps", 1e-5)
            return operators.layer_norm(x, -1, weight, bias, eps=eps) if isinstance(eps, float) else None
        return self._window(expression, layer) if self._windows else None

    def _window(self, expression: ast.Call, layer: Layer) -> Node | None:
        x, shape = self.read(expression.args[0]), self.shapes.shape(expression)
        if contains(x, Window):
            x = self._leaf(expression.args[0])
        if shape is None:
            return None
        if layer.kind.startswith("Conv"):
            return self._depthwise(ast.unparse(expression.func), layer, x, shape)
        settings = pooled(layer, x.shape)
        if settings is None:
            return None
        kind: Literal["max", "mean"] = "max" if layer.kind.startswith("Max") else "mean"
        return Window(kind=kind, argument=x, shape=shape, **settings)  # type: ignore[arg-type]

    def _depthwise(self, name: str, layer: Layer, x: Node, shape: Shape) -> Node | None:
        """A convolution each of whose channels is made of one, and stays it."""
        settings, is_biased = convolved(layer, x.shape), has_bias(layer)
        if settings is None or settings.pop("groups") != shape[1] or x.shape[1] != shape[1]:
            return None
        if layer.kind.startswith("ConvTranspose") or not isinstance(is_biased, bool):
            return None
        weight = Leaf(f"{name}.weight", (shape[1], 1, *settings["kernel"]))
        window = Window(kind="weighted", argument=x, **settings, shape=shape, weight=weight)
        if not is_biased:
            return window
        bias = Leaf(f"{name}.bias", (shape[1], *(1,) * len(settings["kernel"])))
        return operate(operators.BINARY["add"], window, bias)

    def _constant(self, expression: ast.expr) -> float:
        node = self._leaf(expression)
        if not isinstance(node, Number) or not math.isfinite(node.value):
            raise Unsupported(f"{ast.unparse(expression)} where a constant is needed")
        return node.value


def is_computed(node: Node) -> bool:
    """Whether a tree is more than numbers and copies of tensors, and not a mask."""
    if isinstance(node, Op) and node.template == "{0}":
        return is_computed(node.arguments[0])
    return not isinstance(node, Leaf | Number) and not (isinstance(node, Op) and node.is_boolean)
