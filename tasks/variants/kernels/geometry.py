"""How the elements of differently shaped tensors are found in one C loop nest.

The loops run over rows, over the columns of a row and, where something is reduced that is not last, over the lanes of
a column. Dimensions that no tensor tells apart are one loop.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tasks.variants.kernels.nodes import Leaf, Unsupported
from tasks.variants.kernels.values import Shape

SizeOf = Callable[[str], str]
"""Gives the C name of a size that is a Python expression."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """The loop nest over a full shape, cut into rows | columns | lanes."""

    full: Shape
    first: int
    """The columns are the dimensions from `first` up to `stop`; what follows are the lanes."""
    stop: int
    tensors: tuple[tuple[str, Shape], ...]
    """Python names and shapes of what the kernel reads."""

    @property
    def has_rows(self) -> bool:
        return math.prod(self.full[: self.first]) > 1

    @property
    def has_lanes(self) -> bool:
        return math.prod(self.full[self.stop :]) > 1

    @property
    def has_full(self) -> bool:
        return any(shape == self.full for _, shape in self.tensors)

    @property
    def columns(self) -> int:
        return math.prod(self.full[self.first : self.stop])

    def varies(self, shape: Shape, *, over: str) -> bool:
        """Whether a tensor of a shape has more than one element along the rows, columns or lanes."""
        start, end = {"rows": (0, self.first), "columns": (self.first, self.stop), "lanes": (self.stop, None)}[over]
        return math.prod(self._aligned(shape)[start:end]) > 1

    def element(self, leaf: Leaf, size_of: SizeOf) -> str:
        """The C index of a tensor's element for the current row, column and lane.

        Raises:
            Unsupported: if the tensor is repeated in a way that no index of these loops expresses.
        """
        index = self._row(leaf, size_of)
        for over, counter, size in (("columns", "c", "m"), ("lanes", "i", "n")):
            if self.varies(leaf.shape, over=over):
                if not self._is_whole(leaf, over=over):
                    raise Unsupported("a tensor repeated within a row")
                index = counter if index == "0" else f"{_factor(index)} * {size} + {counter}"
        return index

    def sizes(self) -> dict[str, str]:
        """Python expressions of the number of rows, of columns in a row and of lanes in a column."""
        parts = {"rows": (0, self.first), "m": (self.first, self.stop), "n": (self.stop, len(self.full))}
        return {name: self.extent(start, end) for name, (start, end) in parts.items() if start < end}

    def extent(self, start: int, stop: int) -> str:
        """A Python expression of how many elements some dimensions of the full shape have together."""
        rank = len(self.full)
        for name, shape in self.tensors:
            if shape == self.full:
                if (start, stop) == (0, rank):
                    return f"{name}.numel()"
                if stop - start == 1:
                    return f"{name}.shape[{start if stop < rank else -1}]"
                return f"{name}.shape[{start or ''}:{stop if stop < rank else ''}].numel()"
        return " * ".join(self.dimension(dim) for dim in range(start, stop) if self.full[dim] > 1) or "1"

    def shape(self, start: int, stop: int) -> str:
        """Python for the arguments of torch.empty that make a part of the full shape."""
        for name, shape in self.tensors:
            if shape == self.full:
                return f"{name}.shape" if (start, stop) == (0, len(shape)) else f"{name}.shape[{start or ''}:{stop}]"
        return ", ".join(self.dimension(dim) for dim in range(start, stop)) or "()"

    def dimension(self, dim: int) -> str:
        """Python for the size of one dimension of the full shape."""
        for name, shape in self.tensors:
            if self._aligned(shape)[dim] == self.full[dim] and len(shape) >= len(self.full) - dim:
                return f"{name}.shape[{dim - len(self.full)}]"
        raise Unsupported("a dimension that no tensor has")

    def _aligned(self, shape: Shape) -> Shape:
        return (1,) * (len(self.full) - len(shape)) + shape

    def _is_whole(self, leaf: Leaf, *, over: str) -> bool:
        start, end = {"columns": (self.first, self.stop), "lanes": (self.stop, None)}[over]
        return self._aligned(leaf.shape)[start:end] == self.full[start:end]

    def _row(self, leaf: Leaf, size_of: SizeOf) -> str:
        """Which row of the tensor belongs to row r of the loops."""
        own, full = self._aligned(leaf.shape)[: self.first], self.full[: self.first]
        present = [dim for dim in range(self.first) if own[dim] > 1]
        if not present:
            return "0"
        start, end = present[0], present[-1] + 1
        if own[start:end] != full[start:end]:
            raise Unsupported("a tensor repeated between its own dimensions")
        index = "r"
        if math.prod(full[end:]) > 1:
            index = f"r / {size_of(self.extent(end, self.first))}"
        if math.prod(full[:start]) > 1:
            index = f"{_factor(index)} % {size_of(self.extent(start, end))}"
        return index


def geometry(full: Shape, reduced: tuple[int, int] | None, tensors: Sequence[tuple[str, Shape]]) -> Geometry:
    """The loop nest for elementwise work on a full shape, or for what is reduced over some of its dimensions."""
    rank = len(full)
    if reduced is not None:
        return Geometry(full, *reduced, tuple(tensors))
    aligned = [(1,) * (rank - len(shape)) + shape for _, shape in tensors]
    # As few rows as possible: from the cut on, every tensor must be there as a whole or not at all.
    first = next(
        cut
        for cut in range(rank + 1)
        if all(shape[cut:] == full[cut:] or math.prod(shape[cut:]) == 1 for shape in aligned)
    )
    return Geometry(full, first, rank, tuple(tensors))


def _factor(index: str) -> str:
    return f"({index})" if " " in index else index
