"""How the elements of differently shaped tensors are found in one C loop nest.

The loops run over rows, over the columns of a row and, where something is reduced that is not last, over the lanes of
a column. Dimensions that no tensor tells apart are one loop.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.variants.kernels.nodes import Leaf, Unsupported
from tasks.variants.kernels.values import Shape


@dataclass(frozen=True, slots=True)
class Geometry:
    """The loop nest over a full shape, cut into rows | columns | lanes."""

    full: Shape
    first: int
    """The columns are the dimensions from `first` up to `stop`; what follows are the lanes."""
    stop: int
    leaves: tuple[Leaf, ...]

    @property
    def has_rows(self) -> bool:
        return math.prod(self.full[: self.first]) > 1

    @property
    def has_lanes(self) -> bool:
        return math.prod(self.full[self.stop :]) > 1

    def varies(self, shape: Shape, *, over: str) -> bool:
        """Whether a tensor of a shape has more than one element along the rows, columns or lanes."""
        start, end = {"rows": (0, self.first), "columns": (self.first, self.stop), "lanes": (self.stop, None)}[over]
        return math.prod(self._aligned(shape)[start:end]) > 1

    def element(self, leaf: Leaf) -> tuple[str, tuple[str, ...]]:
        """The C index of the loops' current element, and the extra sizes it needs as Python expressions.

        Raises:
            Unsupported: if the tensor is repeated in a way that no index of these loops expresses.
        """
        row, sizes = self._row(leaf)
        index = row
        for over, name, size in (("columns", "c", "m"), ("lanes", "i", "n")):
            if self.varies(leaf.shape, over=over):
                if not self._is_whole(leaf, over=over):
                    raise Unsupported("a tensor repeated within a row")
                index = name if index == "0" else f"{_factor(index)} * {size} + {name}"
        return index, sizes

    def sizes(self) -> dict[str, str]:
        """Python expressions of the number of rows, of columns in a row and of lanes in a column."""
        parts = {"rows": (0, self.first), "m": (self.first, self.stop), "n": (self.stop, len(self.full))}
        return {name: self.extent(start, end) for name, (start, end) in parts.items()}

    def extent(self, start: int, stop: int) -> str:
        """A Python expression of how many elements some dimensions of the full shape have together."""
        rank = len(self.full)
        for leaf in self.leaves:
            if leaf.shape == self.full and stop > start:
                if (start, stop) == (0, rank):
                    return f"{leaf.text}.numel()"
                if stop - start == 1:
                    return f"{leaf.text}.shape[{start if stop < rank else -1}]"
                return f"{leaf.text}.shape[{start or ''}:{stop if stop < rank else ''}].numel()"
        return " * ".join(self._dimension(dim) for dim in range(start, stop) if self.full[dim] > 1) or "1"

    def shape(self) -> str:
        """A Python expression of the full shape."""
        for leaf in self.leaves:
            if leaf.shape == self.full:
                return f"{leaf.text}.shape"
        return ", ".join(self._dimension(dim) for dim in range(len(self.full)))

    def _dimension(self, dim: int) -> str:
        place = dim - len(self.full)
        for leaf in self.leaves:
            if self._aligned(leaf.shape)[dim] == self.full[dim] and len(leaf.shape) >= -place:
                return f"{leaf.text}.shape[{place}]"
        raise Unsupported("a dimension that no tensor has")

    def _aligned(self, shape: Shape) -> Shape:
        return (1,) * (len(self.full) - len(shape)) + shape

    def _is_whole(self, leaf: Leaf, *, over: str) -> bool:
        start, end = {"columns": (self.first, self.stop), "lanes": (self.stop, None)}[over]
        return self._aligned(leaf.shape)[start:end] == self.full[start:end]

    def _row(self, leaf: Leaf) -> tuple[str, tuple[str, ...]]:
        """Which row of the tensor belongs to row r of the loops."""
        own, full = self._aligned(leaf.shape)[: self.first], self.full[: self.first]
        present = [dim for dim in range(self.first) if own[dim] > 1]
        if not present:
            return "0", ()
        start, end = present[0], present[-1] + 1
        if own[start:end] != full[start:end]:
            raise Unsupported("a tensor repeated between its own dimensions")
        sizes = []
        index = "r"
        if math.prod(full[end:]) > 1:
            index = f"r / s{len(sizes)}"
            sizes.append(self.extent(end, self.first))
        if math.prod(full[:start]) > 1:
            index = f"{_factor(index)} % s{len(sizes)}"
            sizes.append(self.extent(start, end))
        return index, tuple(sizes)


def geometry(full: Shape, reduced: tuple[int, int] | None, leaves: Sequence[Leaf]) -> Geometry:
    """The loop nest for elementwise work on a full shape, or for rows that are reduced."""
    rank = len(full)
    if reduced is not None:
        return Geometry(full, *reduced, tuple(leaves))
    first = 0
    aligned = [(1,) * (rank - len(leaf.shape)) + leaf.shape for leaf in leaves if math.prod(leaf.shape) > 1]
    for cut in range(1, rank):
        # Where a tensor is repeated before but not after a cut, or the reverse, the loops must be cut too.
        for shape in aligned:
            before = shape[first:cut] == full[first:cut]
            if before != (shape[cut:] == full[cut:]) and math.prod(full[cut:]) > 1:
                first = cut
                break
    return Geometry(full, first, rank, tuple(leaves))


def _factor(index: str) -> str:
    return f"({index})" if " " in index else index
