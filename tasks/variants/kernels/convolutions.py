"""Convolutions in a forward: which there are, of which shapes, and what they read."""

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass

from tasks.variants.kernels.calls import layer_called
from tasks.variants.kernels.expressions import expressions
from tasks.variants.kernels.model import Model
from tasks.variants.kernels.results import convolved, has_bias
from tasks.variants.kernels.steps import Site
from tasks.variants.kernels.values import Layer, Shape, is_size


@dataclass(frozen=True, slots=True)
class Convolution:
    """A layer that goes over the places of a batch of series, pictures or volumes.

    A transposed one with a stride of s is s convolutions along each dimension that make every s-th place: its phases.
    Tap t lies t times the dilation d further in the output, so that a phase has every (s / g)-th tap, with g the
    greatest common divisor of s and d; these reach every (d / g)-th place of the input, and of g phases only one has
    any.
    """

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
    groups: int
    site: Site
    output_padding: tuple[int, ...] | None = None
    """None for one that is not transposed."""

    @property
    def is_transposed(self) -> bool:
        return self.output_padding is not None

    @property
    def phases(self) -> tuple[int, ...]:
        """In each dimension."""
        return self.stride if self.is_transposed else (1,) * len(self.stride)

    @property
    def grid(self) -> tuple[int, ...]:
        """How many places of a phase there are at most, in each dimension."""
        return tuple(-(-size // phases) for size, phases in zip(self.out_shape[2:], self.phases, strict=True))

    @property
    def common(self) -> tuple[int, ...]:
        """Of how many phases only one has taps, in each dimension."""
        return tuple(map(math.gcd, self.phases, self.dilation))

    @property
    def tap_steps(self) -> tuple[int, ...]:
        """Of how many taps a phase has one, in each dimension."""
        return tuple(phases // common for phases, common in zip(self.phases, self.common, strict=True))

    @property
    def window(self) -> tuple[int, ...]:
        """How many taps a phase has at most, in each dimension."""
        return tuple(-(-size // step) for size, step in zip(self.kernel, self.tap_steps, strict=True))

    @property
    def places(self) -> int:
        """Of all outputs of one channel and phase."""
        return self.out_shape[0] * math.prod(self.grid)

    @property
    def group_channels(self) -> tuple[int, int]:
        """Of the input and of the output, in each group."""
        return self.in_shape[1] // self.groups, self.out_shape[1] // self.groups

    @property
    def multiplications(self) -> int:
        outputs = self.places * math.prod(self.tap_steps) * self.out_shape[1]
        return outputs * self.group_channels[0] * math.prod(self.window)

    @property
    def weight_shape(self) -> Shape:
        ins, outs = self.group_channels
        return (*((self.in_shape[1], outs) if self.is_transposed else (self.out_shape[1], ins)), *self.kernel)


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
        if not _is_known(in_shape) or not _is_known(out_shape):
            continue
        geometry = convolved(layer, in_shape)  # type: ignore[arg-type]
        is_biased = has_bias(layer) if geometry else None
        if geometry is None or not isinstance(is_biased, bool):
            continue
        yield Convolution(
            layer=name,
            given=ast.unparse(node.args[0]),
            in_shape=in_shape,  # type: ignore[arg-type]
            out_shape=out_shape,  # type: ignore[arg-type]
            has_bias=is_biased,
            site=site(),
            **geometry,
        )


def _is_known(shape: Shape | None) -> bool:
    return shape is not None and all(is_size(size) and size > 0 for size in shape)
