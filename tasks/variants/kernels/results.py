"""Shapes of what products, layers and rearrangements make of tensors of known shapes."""

import math
import re
from typing import Any

from tasks.variants.kernels.values import Layer, Shape, Tensor, Value, broadcast, is_size

_LAYERS_OF_SAME_SHAPE = {
    "ReLU", "GELU", "SiLU", "Sigmoid", "Tanh", "Mish", "Softplus", "ELU", "LeakyReLU", "Hardtanh", "Hardswish",
    "LayerNorm", "RMSNorm", "BatchNorm1d", "BatchNorm2d", "GroupNorm", "Dropout", "Identity", "Softmax", "LogSoftmax",
    "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "SELU", "CELU", "Hardsigmoid", "ReLU6",
}  # fmt: skip
_CONVOLUTION = ("in_channels", "out_channels", "kernel_size", "stride", "padding")
_ARGUMENTS = {
    "Conv": (*_CONVOLUTION, "dilation", "groups"),
    "ConvTranspose": (*_CONVOLUTION, "output_padding", "groups", "bias", "dilation"),
    "MaxPool": ("kernel_size", "stride", "padding", "dilation"),
    "AvgPool": ("kernel_size", "stride", "padding"),
}
_GEOMETRY = ("kernel", "stride", "padding", "dilation")
_PLAIN_POOLING = {"ceil_mode": False, "return_indices": False, "count_include_pad": True}
_DEFAULTS = {"stride": 1, "padding": 0, "dilation": 1, "output_padding": 0, "groups": 1, "ceil_mode": False}


def multiplied(left: Value, right: Value) -> Value:
    if not isinstance(left, Tensor) or not isinstance(right, Tensor) or not left.shape or not right.shape:
        return None
    if not left.is_float or not right.is_float:
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
    found = re.fullmatch(r"(Conv|ConvTranspose|MaxPool|AvgPool)(\d)d", layer.kind)
    if found and len(given.shape) == int(found[2]) + 2:
        return _slid(layer, found[1], given.shape)
    if layer.kind == "Linear" and len(layer.arguments) > 1 and is_size(layer.arguments[1]):
        return Tensor((*given.shape[:-1], layer.arguments[1]))  # type: ignore[arg-type]
    if not given.is_float:
        return None
    if layer.kind == "Flatten":
        return _flattened(given.shape, list(layer.arguments), {"start_dim": 1} | dict(layer.keywords))
    if found := re.fullmatch(r"Adaptive(?:Avg|Max)Pool(\d)d", layer.kind):
        return _pooled_to(layer, int(found[1]), given.shape)
    return None


def _pooled_to(layer: Layer, rank: int, shape: Shape) -> Value:
    """The shape after pooling to as many places as the layer says."""
    match layer:
        case Layer(arguments=(size,), keywords=()) | Layer(arguments=(), keywords=(("output_size", size),)):
            places = _each(size, rank)
            return Tensor((*shape[:-rank], *places)) if places and len(shape) > rank else None
    return None


def _slid(layer: Layer, kind: str, shape: Shape) -> Value:
    """The shape after a window has gone over the places of a batch of pictures, volumes or series."""
    named = _settings(layer, kind)
    rank = len(shape) - 2
    channels = named.get("out_channels") if kind.startswith("Conv") else shape[1]
    sizes = [_each(named[name], rank) for name in ("stride", "padding", "dilation", "output_padding")]
    kernel = _each(named.get("kernel_size"), rank)
    if not is_size(channels) or kernel is None or any(size is None for size in sizes) or named["ceil_mode"]:
        return None
    places = []
    settings = zip(shape[2:], kernel, *(each for each in sizes if each), strict=True)
    for size, width, stride, padding, dilation, more in settings:
        reach = dilation * (width - 1)
        if kind == "ConvTranspose":
            places.append((size - 1) * stride - 2 * padding + reach + more + 1)
        else:
            places.append((size + 2 * padding - reach - 1) // stride + 1)
    return Tensor((shape[0], channels, *places)) if min(places) > 0 else None  # type: ignore[arg-type]


def pooled(layer: Layer, shape: Shape) -> dict[str, tuple[int, ...]] | None:
    """The kernel, stride, padding and dilation of a pooling layer, for every place; None where there is more to it."""
    found = re.fullmatch(r"(MaxPool|AvgPool)(\d)d", layer.kind)
    if not found or len(shape) != int(found[2]) + 2 or len(layer.arguments) > len(_ARGUMENTS[found[1]]):
        return None
    others = [(word, value) for word, value in layer.keywords if word not in _ARGUMENTS[found[1]]]
    if any(word not in _PLAIN_POOLING or _PLAIN_POOLING[word] is not value for word, value in others):
        return None
    named, rank = _settings(layer, found[1]), len(shape) - 2
    sizes = {name.removesuffix("_size"): _each(named.get(name), rank) for name in _ARGUMENTS["MaxPool"]}
    return None if None in sizes.values() else sizes  # type: ignore[return-value]


def convolved(layer: Layer, shape: Shape) -> dict[str, Any] | None:
    """The kernel, stride, padding, dilation and groups of a convolution; None where there is more to it.

    Of a transposed one also the output padding.
    """
    found = re.fullmatch(r"(Conv|ConvTranspose)(\d)d", layer.kind)
    if not found or len(shape) != int(found[2]) + 2 or len(layer.arguments) > len(_ARGUMENTS[found[1]]):
        return None
    named, rank = _settings(layer, found[1]), len(shape) - 2
    others = set(dict(layer.keywords)) - {*_ARGUMENTS[found[1]], "bias"}
    groups, channels = named["groups"], named.get("out_channels")
    if others or named.get("in_channels") != shape[1] or not isinstance(groups, int) or not isinstance(channels, int):
        return None
    if groups < 1 or shape[1] % groups or channels % groups:
        return None
    wanted = (*_GEOMETRY, *(["output_padding"] if found[1] == "ConvTranspose" else []))
    sizes = {name: _each(named.get(f"{name}_size", named.get(name)), rank) for name in wanted}
    return None if None in sizes.values() else {**sizes, "groups": groups}


def has_bias(layer: Layer) -> Value:
    """Whether a convolution adds one, as far as the text tells."""
    return _settings(layer, layer.kind[:-2]).get("bias", True)


def out_channels(layer: Layer) -> Value:
    """Of a convolution."""
    return _settings(layer, layer.kind[:-2]).get("out_channels")


def _settings(layer: Layer, kind: str) -> dict[str, object]:
    named = {**_DEFAULTS, **dict(zip(_ARGUMENTS[kind], layer.arguments, strict=False)), **dict(layer.keywords)}
    if kind.endswith("Pool") and "stride" not in dict(layer.keywords) and len(layer.arguments) < 2:
        named["stride"] = named.get("kernel_size")
    return named


def _each(value: Value, rank: int) -> tuple[int, ...] | None:
    """A setting for every dimension."""
    sizes = value if isinstance(value, tuple) else (value,) * rank
    return sizes if len(sizes) == rank and all(map(is_size, sizes)) else None  # type: ignore[return-value]


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
        case ("size", []) if not keywords:
            return shape
        case ("flatten", _):
            return _flattened(shape, arguments, keywords)
        case ("squeeze", _):
            return _squeezed(shape, arguments, keywords)
        case ("chunk" | "split" | "unbind", _):
            return _in_parts(name, shape, arguments, keywords)
        case ("reshape" | "view", sizes):
            wanted = sizes[0] if sizes and isinstance(sizes[0], tuple) else tuple(sizes)
            return _reshaped(shape, wanted)
    return None


def joined(name: str, parts: Value, dim: Value) -> Value:
    """The shape of tensors that are laid one after the other along a dimension, or by "stack" along a new one."""
    tensors = [part for part in parts if isinstance(part, Tensor)] if isinstance(parts, tuple) else []
    if not tensors or len(tensors) != len(parts):  # type: ignore[arg-type]
        return None
    shapes = [tensor.shape for tensor in tensors]
    rank = len(shapes[0]) + (name == "stack")
    if not isinstance(dim, int) or not -rank <= dim < rank:
        return None
    place = dim % rank
    if name == "stack":
        shapes = [(*shape[:place], 1, *shape[place:]) for shape in shapes]
    if len({(len(shape), *shape[:place], *shape[place + 1 :]) for shape in shapes}) > 1:
        return None
    size = sum(shape[place] for shape in shapes)
    return Tensor((*shapes[0][:place], size, *shapes[0][place + 1 :]), all(tensor.is_float for tensor in tensors))


def _flattened(shape: Shape, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    """The shape with dimensions from one to another, the last where none is given, made one."""
    names = ("start_dim", "end_dim")
    given = {"start_dim": 0, "end_dim": -1} | keywords | dict(zip(names, arguments, strict=False))
    rank = len(shape)
    ends = [dim % rank for dim in map(given.get, names) if isinstance(dim, int) and -rank <= dim < rank]
    if len(arguments) > len(names) or set(given) - set(names) or len(ends) < len(names) or ends[0] > ends[1]:
        return None
    first, last = ends
    return Tensor((*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


def _squeezed(shape: Shape, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    """The shape without dimensions of one: all of them, or those of the given that are."""
    rank = len(shape)
    match arguments, keywords:
        case [], {**others} if not others:
            chosen: tuple[Value, ...] = tuple(range(rank))
        case ([dim], {**others}) | ([], {"dim": dim, **others}) if not others:
            chosen = dim if isinstance(dim, tuple) else (dim,)
        case _:
            return None
    places = [dim % rank for dim in chosen if isinstance(dim, int) and -rank <= dim < rank]
    if len(places) != len(chosen):
        return None
    return Tensor(tuple(size for place, size in enumerate(shape) if size != 1 or place not in places))


def _reshaped(shape: Shape, wanted: tuple[Value, ...]) -> Value:
    if not wanted or not all(is_size(size) for size in wanted) or wanted.count(-1) > 1:
        return None
    known = math.prod(size for size in wanted if size != -1)  # type: ignore[misc]
    rest = math.prod(shape) // known if known > 0 else 1
    return Tensor(tuple(rest if size == -1 else size for size in wanted))  # type: ignore[misc]


def _in_parts(name: str, shape: Shape, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    """What a tensor is divided into along one dimension, the first where none is given."""
    how, rest = (None, arguments) if name == "unbind" else (next(iter(arguments), None), arguments[1:])
    dim = keywords.get("dim", next(iter(rest), 0))
    if set(keywords) - {"dim"} or not isinstance(dim, int) or not -len(shape) <= dim < len(shape) or not shape[dim]:
        return None
    before, size, after = shape[:dim], shape[dim], shape[dim % len(shape) + 1 :]
    match name, how:
        case "unbind", _:
            return (Tensor((*before, *after)),) * size
        case "chunk", int() if how > 0:
            sizes = _by_steps(size, -(-size // how))
        case "split", int() if how > 0:
            sizes = _by_steps(size, how)
        case "split", tuple() if all(map(is_size, how)) and sum(how) == size:
            sizes = how
        case _:
            return None
    return tuple(Tensor((*before, each, *after)) for each in sizes)


def _by_steps(size: int, step: int) -> tuple[int, ...]:
    return tuple(min(step, size - start) for start in range(0, size, step))
