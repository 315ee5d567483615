"""Shapes of a program's values, worked out from its text; nothing is executed, and what is not known stays unknown."""

import ast
import math
from collections.abc import Callable, Sequence

from tasks.variants.kernels.calls import Call, layer_called, layer_made, torch_call
from tasks.variants.kernels.results import joined, multiplied, out_channels, rearranged, through_layer
from tasks.variants.kernels.values import Layer, Shape, Tensor, Value, broadcast, is_number, is_size, reduced

_CREATION = {"randn", "rand", "zeros", "ones", "empty"}
_REDUCTIONS = {"sum", "mean", "amax", "amin", "var", "std", "logsumexp", "norm", "max", "min", "prod"}
_JOINING = {"cat", "concat", "concatenate", "stack"}
_SAME_SHAPE = {
    "clone", "contiguous", "detach", "float", "softmax", "log_softmax", "cumsum", "cumprod", "flip", "tril", "triu",
    "layer_norm", "batch_norm", "rms_norm", "group_norm", "dropout", "roll", "normalize", "zeros_like", "ones_like",
    "empty_like", "rand_like", "randn_like",
}  # fmt: skip
_POINTWISE = {
    "abs", "exp", "expm1", "log", "log1p", "log2", "exp2", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "relu",
    "erf", "square", "reciprocal", "neg", "clamp", "pow", "add", "sub", "mul", "div", "where", "maximum", "minimum",
    "gelu", "silu", "softplus", "mish", "elu", "selu", "leaky_relu", "hardtanh", "hardswish", "hardsigmoid", "relu6",
    "logsigmoid", "softsign", "masked_fill", "lerp", "addcmul", "addcdiv", "clamp_min", "clamp_max", "logaddexp",
}  # fmt: skip
_NUMBERS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Pow: lambda a, b: a**b,
}


class Shapes:
    """Known values by name; attributes of self go by "self.name", what functions of the file return by "name()"."""

    def __init__(self, values: dict[str, Value]) -> None:
        self.values = values

    def bind(self, names: Sequence[str], value: ast.expr) -> None:
        """Note what a name is that gets a value, or several that it is unpacked into."""
        found = self.of(value)
        self.values |= dict(zip(names, (found,) if len(names) == 1 else _unpacked(found, len(names)), strict=True))

    def of(self, node: ast.expr | None) -> Value:
        """What the expression evaluates to, as far as it is known."""
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self.values.get(node.id)
            case ast.Tuple() | ast.List():
                return tuple(self.of(element) for element in node.elts)
            case ast.Attribute():
                return self._attribute(node)
            case ast.UnaryOp():
                value = self.of(node.operand)
                if is_number(value) and isinstance(node.op, ast.USub):
                    return -value  # type: ignore[operator]
                return value if isinstance(value, Tensor) else None
            case ast.Compare():
                return _not_float(self._elementwise([node.left, *node.comparators]))
            case ast.BinOp():
                return self._binary(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.Call():
                return self._called(node)
        return None

    def shape(self, node: ast.expr) -> Shape | None:
        """The shape of a float32 tensor; None for anything else."""
        value = self.of(node)
        return value.shape if isinstance(value, Tensor) and value.is_float else None

    def _attribute(self, node: ast.Attribute) -> Value:
        text = ast.unparse(node)
        if text in ("math.pi", "math.e", "math.inf"):
            return getattr(math, node.attr)
        if text in self.values:
            return self.values[text]
        match self.of(node.value):
            case Tensor(shape=shape, is_float=is_float):
                return {"shape": shape, "T": Tensor(shape[::-1], is_float), "ndim": len(shape)}.get(node.attr)
            case (first, *_) if node.attr == "values":
                return first
            case Layer(kind="Linear", arguments=(int(columns), int(rows), *_)):
                return {"weight": Tensor((rows, columns)), "bias": Tensor((rows,))}.get(node.attr)
            case Layer(kind="LayerNorm" | "RMSNorm", arguments=(int(size), *_)):
                return Tensor((size,)) if node.attr in ("weight", "bias") else None
            case Layer(kind="Conv1d" | "Conv2d" | "Conv3d") as layer if node.attr == "bias":
                channels = out_channels(layer)
                return Tensor((channels,)) if is_size(channels) else None  # type: ignore[arg-type]
        return None

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self.of(node.left), self.of(node.right)
        if isinstance(node.op, ast.MatMult):
            return multiplied(left, right)
        if is_number(left) and is_number(right) and type(node.op) in _NUMBERS:
            try:
                return _NUMBERS[type(node.op)](left, right)  # type: ignore[arg-type]
            except (ArithmeticError, ValueError):
                return None
        value = self._elementwise([node.left, node.right])
        return value if type(node.op) in _NUMBERS else _not_float(value)

    def _elementwise(self, nodes: Sequence[ast.expr]) -> Value:
        values = [self.of(node) for node in nodes]
        tensors = [value for value in values if isinstance(value, Tensor)]
        if not tensors or any(not isinstance(value, Tensor) and not is_number(value) for value in values):
            return None
        shape = broadcast(*(tensor.shape for tensor in tensors))
        return None if shape is None else Tensor(shape, any(tensor.is_float for tensor in tensors))

    def _subscript(self, node: ast.Subscript) -> Value:
        value = self.of(node.value)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(value, tuple):
            index = self.of(node.slice)
            return value[index] if is_size(index) and -len(value) <= index < len(value) else None  # type: ignore
        if not isinstance(value, Tensor):
            return None
        waiting, shape = list(value.shape), []
        for item in items:
            if isinstance(item, ast.Constant) and item.value is None:
                shape.append(1)
            elif not waiting:
                return None
            elif isinstance(item, ast.Slice):
                bounds = [(bound, self.of(bound)) for bound in (item.lower, item.upper, item.step)]
                if any(bound is not None and not is_size(known) for bound, known in bounds):
                    return None
                shape.append(len(range(waiting.pop(0))[slice(*(known for _, known in bounds))]))  # type: ignore
            elif is_size(self.of(item)):
                waiting.pop(0)
            else:
                return None
        return Tensor((*shape, *waiting), value.is_float)

    def _called(self, written: ast.Call) -> Value:
        if isinstance(written.func, ast.Name) and not written.keywords:
            return self.values.get(f"{written.func.id}()")
        node = self._spread(written)
        kind = layer_made(node)
        if kind == "Parameter":
            return self.of(node.args[0])
        if kind is not None:
            keywords = tuple((word.arg or "", self.of(word.value)) for word in node.keywords)
            return Layer(kind, tuple(self.of(argument) for argument in node.args), keywords)
        name = layer_called(node)
        if name is not None and isinstance(layer := self.values.get(name), Layer) and node.args:
            return through_layer(layer, self.of(node.args[0]))
        call = torch_call(node)
        return self._function(call) if call and call.operands else None

    def _spread(self, call: ast.Call) -> ast.Call:
        """The call with the sizes in place of `*shape`, as far as they are known."""
        arguments: list[ast.expr] = []
        for argument in call.args:
            sizes = self.of(argument.value) if isinstance(argument, ast.Starred) else None
            if isinstance(sizes, tuple) and all(map(is_size, sizes)):
                arguments += [ast.Constant(size) for size in sizes]
            else:
                arguments.append(argument)
        return ast.Call(call.func, arguments, call.keywords)

    def _function(self, call: Call) -> Value:
        if "dtype" in call.keywords:
            return None
        values = [self.of(operand) for operand in call.operands]
        first = values[0]
        if call.name in _CREATION and not call.is_method:
            sizes = first if isinstance(first, tuple) else tuple(values)
            return Tensor(_sizes(sizes)) if all(is_size(size) for size in sizes) else None
        if call.name == "randint" and not call.is_method:
            given = self.of(call.keywords["size"]) if "size" in call.keywords else values[-1]
            is_known = isinstance(given, tuple) and all(map(is_size, given))
            return Tensor(given, is_float=False) if is_known else None  # type: ignore[arg-type]
        if call.name in _JOINING and isinstance(call.operands[0], ast.List | ast.Tuple):  # a name's list may have grown
            dim = call.argument(1, "dim")
            is_plain = len(values) < 3 and not set(call.keywords) - {"dim"}
            return joined(call.name, first, 0 if dim is None else self.of(dim)) if is_plain else None
        if not isinstance(first, Tensor) and call.name != "where":
            return None
        if call.name in _POINTWISE:
            return self._elementwise(call.operands)
        shape = first.shape if isinstance(first, Tensor) else ()
        if call.name in _SAME_SHAPE:
            return Tensor(shape) if call.name == "float" else first
        if call.name.endswith("_loss") or call.name.startswith("binary_cross_entropy"):
            reduction = self.of(call.keywords.get("reduction"))
            return self._elementwise(call.operands) if reduction == "none" else Tensor(())
        if call.name in _REDUCTIONS:
            return self._reduction(call, shape)
        if call.name in ("matmul", "mm", "bmm"):
            return multiplied(first, values[1] if len(values) > 1 else None)
        if call.name == "linear" and isinstance(weight := values[1], Tensor):
            return Tensor((*shape[:-1], weight.shape[0]))
        moved = rearranged(call.name, shape, values[1:], {k: self.of(v) for k, v in call.keywords.items()})
        return moved if isinstance(first, Tensor) and first.is_float else _not_float(moved)

    def _reduction(self, call: Call, shape: Shape) -> Value:
        place = 2 if call.name == "norm" else 1
        dims, keepdim = call.argument(place, "dim"), call.argument(place + 1, "keepdim")
        if dims is not None and self.of(dims) is None:
            return None
        if self.shape(call.operands[0]) != shape:
            return None
        result = reduced(shape, self.of(dims), keepdim=self.of(keepdim) is True)
        if result is None:
            return None
        is_pair = call.name in ("max", "min") and dims  # of the extrema, and where they are
        return (Tensor(result), Tensor(result, is_float=False)) if is_pair else Tensor(result)


def _unpacked(value: Value, count: int) -> tuple[Value, ...]:
    match value:
        case tuple() if len(value) == count:
            return value
        case Tensor(shape=(size, *rest)) if size == count:
            return (Tensor(tuple(rest), value.is_float),) * count
    return (None,) * count


def _not_float(value: Value) -> Value:
    """The same tensor, or several, of masks or integers."""
    if isinstance(value, tuple):
        return tuple(map(_not_float, value))
    return Tensor(value.shape, is_float=False) if isinstance(value, Tensor) else value


def _sizes(values: tuple[Value, ...]) -> Shape:
    return tuple(value for value in values if isinstance(value, int))
