"""Convolutions in a forward: which there are, of which shapes, and what they read."""

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass

from tasks.variants.kernels.calls import layer_called
from tasks.variants.kernels.expressions import expressions
from tasks.variants.kernels.model import Model
from tasks.variants.kernels.results import convolved
from tasks.variants.kernels.steps import Site
from tasks.variants.kernels.values import Layer, Shape, is_size


@dataclass(frozen=True, slots=True)
class Convolution:
    """A layer that goes over the places of a batch of series, pictures or volumes, without groups."""

    layer: str
    """Its name, such as "self.conv"."""
    given: str
    """The text of its input."""
    in_shape: Shape
    """(batch, channels, a size for each dimension)."""
    out_shape: Shape
    has_bias: bool
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    site: Site

    @property
    def places(self) -> int:
        """Of all outputs of one channel."""
        return self.out_shape[0] * math.prod(self.out_shape[2:])

    @property
    def taps(self) -> int:
        """Inputs of one channel that one output is made of."""
        return math.prod(self.kernel)

    @property
    def multiplications(self) -> int:
        return self.places * self.out_shape[1] * self.in_shape[1] * self.taps

    @property
    def weight_shape(self) -> Shape:
        return (self.out_shape[1], self.in_shape[1], *self.kernel)


def convolutions(model: Model) -> Iterator[Convolution]:
    """Every convolution of a forward whose shapes the text tells, the last first."""
    for node, shapes, site in expressions(model):
        name = layer_called(node)
        layer = shapes.values.get(name) if name else None
        if name is None or not isinstance(layer, Layer) or not isinstance(node, ast.Call):
            continue
        if len(node.args) != 1 or node.keywords:
            continue
        in_shape, out_shape = shapes.shape(node.args[0]), shapes.shape(node)
        has_bias = dict(layer.keywords).get("bias", True)
        if not _is_known(in_shape) or not _is_known(out_shape) or not isinstance(has_bias, bool):
            continue
        geometry = convolved(layer, in_shape)  # type: ignore[arg-type]
        if geometry is not None:
            yield Convolution(
                layer=name,
                given=ast.unparse(node.args[0]),
                in_shape=in_shape,  # type: ignore[arg-type]
                out_shape=out_shape,  # type: ignore[arg-type]
                has_bias=has_bias,
                site=site(),
                **geometry,
            )


def _is_known(shape: Shape | None) -> bool:
    return shape is not None and all(is_size(size) and size > 0 for size in shape)
