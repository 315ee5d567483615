"""Where along a dimension the largest or the smallest value is: torch.argmax and torch.argmin."""

import ast
from collections.abc import Callable
from dataclasses import dataclass

from tasks.variants.kernels.calls import torch_call
from tasks.variants.kernels.expressions import expressions
from tasks.variants.kernels.model import Model
from tasks.variants.kernels.nodes import Leaf
from tasks.variants.kernels.shapes import Shapes
from tasks.variants.kernels.steps import Site
from tasks.variants.kernels.values import Shape

_LARGEST = {"argmax": True, "argmin": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """The first place of an extremum along one dimension of a tensor, and the step that it is written in."""

    is_largest: bool
    argument: Leaf
    """Not what is computed in the kernel: there other values might be equal than PyTorch makes."""
    dim: int
    is_kept: bool
    site: Site

    @property
    def kept(self) -> Shape:
        """The shape of the result with the dimension in it, whether or not it stays."""
        full = self.argument.shape
        return (*full[: self.dim], 1, *full[self.dim + 1 :])

    @property
    def shape(self) -> Shape:
        """Of the result."""
        return self.kept if self.is_kept else (*self.kept[: self.dim], *self.kept[self.dim + 1 :])


def position(model: Model) -> Position | None:
    """The last argmax or argmin of a forward along a dimension that the text names."""
    found = (_position_at(*where) for where in expressions(model))
    return next((each for each in found if each is not None), None)


def _position_at(node: ast.expr, shapes: Shapes, site: Callable[[], Site]) -> Position | None:
    call = torch_call(node)
    if call is None or call.name not in _LARGEST or not call.operands or set(call.keywords) - {"dim", "keepdim"}:
        return None
    source, keepdim = call.operands[0], call.argument(2, "keepdim")
    full, dim = shapes.shape(source), shapes.of(call.argument(1, "dim"))
    is_kept = keepdim is not None and shapes.of(keepdim)
    if not full or not isinstance(dim, int) or not isinstance(is_kept, bool) or dim not in range(-len(full), len(full)):
        return None
    leaf = Leaf(ast.unparse(source), full)
    return Position(is_largest=_LARGEST[call.name], argument=leaf, dim=dim % len(full), is_kept=is_kept, site=site())
