"""Shapes of what products, layers and rearrangements make of tensors of known shapes."""

import math

from tasks.variants.kernels.values import Layer, Shape, Tensor, Value, broadcast, is_size

_LAYERS_OF_SAME_SHAPE = {
    "ReLU", "GELU", "SiLU", "Sigmoid", "Tanh", "Mish", "Softplus", "ELU", "LeakyReLU", "Hardtanh", "Hardswish",
    "LayerNorm", "RMSNorm", "BatchNorm1d", "BatchNorm2d", "GroupNorm", "Dropout", "Identity", "Softmax", "LogSoftmax",
}  # fmt: skip


def multiplied(left: Value, right: Value) -> Value:
    if not isinstance(left, Tensor) or not isinstance(right, Tensor) or not left.shape or not right.shape:
        return None
    if len(left.shape) == 1 or len(right.shape) == 1:
        return Tensor(right.shape[:-2] + right.shape[-1:] if len(left.shape) == 1 else left.shape[:-1])
    batch = broadcast(left.shape[:-2], right.shape[:-2])
    return None if batch is None else Tensor((*batch, left.shape[-2], right.shape[-1]))


def through_layer(layer: Layer, given: Value) -> Value:
    if not isinstance(given, Tensor):
        return None
    if layer.kind in _LAYERS_OF_SAME_SHAPE:
        return given
    if layer.kind == "Conv2d" and len(given.shape) == 4:
        return _convolved(layer, given.shape)
    if layer.kind == "Linear" and len(layer.arguments) > 1 and is_size(layer.arguments[1]):
        return Tensor((*given.shape[:-1], layer.arguments[1]))  # type: ignore[arg-type]
    return None


def _convolved(layer: Layer, shape: Shape) -> Value:
    named = dict(zip(("in", "out", "kernel_size", "stride", "padding"), layer.arguments, strict=False))
    named = {"stride": 1, "padding": 0, **named, **dict(layer.keywords)}
    sizes = [named.get(name) for name in ("out", "kernel_size", "stride", "padding")]
    if "dilation" in named or not all(is_size(size) for size in sizes):
        return None
    channels, kernel, stride, padding = sizes
    places = ((size + 2 * padding - kernel) // stride + 1 for size in shape[2:])  # type: ignore[operator]
    return Tensor((shape[0], channels, *places))  # type: ignore[arg-type]


def rearranged(name: str, shape: Shape, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    """The shape after an operation that moves or repeats elements without computing with them."""
    match name, arguments:
        case ("t", []):
            return Tensor(shape[::-1])
        case ("transpose", [int(one), int(other)]) if max(abs(one), abs(other)) <= len(shape):
            sizes = list(shape)
            sizes[one], sizes[other] = sizes[other], sizes[one]
            return Tensor(tuple(sizes))
        case ("unsqueeze", [int(dim)]):
            place = dim % (len(shape) + 1)
            return Tensor((*shape[:place], 1, *shape[place:]))
        case ("diag", []):
            return Tensor((*shape, *shape) if len(shape) == 1 else (min(shape),))
        case ("size", [int(dim)]) if -len(shape) <= dim < len(shape):
            return shape[dim]
        case ("reshape" | "view", sizes):
            wanted = sizes[0] if sizes and isinstance(sizes[0], tuple) else tuple(sizes)
            return _reshaped(shape, wanted)
    return None


def _reshaped(shape: Shape, wanted: tuple[Value, ...]) -> Value:
    if not wanted or not all(is_size(size) for size in wanted) or wanted.count(-1) > 1:
        return None
    known = math.prod(size for size in wanted if size != -1)  # type: ignore[misc]
    rest = math.prod(shape) // known if known > 0 else 1
    return Tensor(tuple(rest if size == -1 else size for size in wanted))  # type: ignore[misc]
