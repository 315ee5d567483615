"""How a loop nest of known sizes is cut into the tiles that the programs of a Triton kernel compute."""

import math
from dataclasses import dataclass
from typing import Self

from tasks.variants.kernels.geometry import Geometry
from tasks.variants.kernels.nodes import Unsupported

BLOCK = 1024
MOST_WHOLE = 8192
"""Elements of a tile up to which whole rows are kept in registers; what is longer is passed over in blocks."""
LOOPED = 4096
LANES = 32
FEW_PROGRAMS = 64


class Fixed(Geometry):
    """A loop nest of known sizes."""

    def extent(self, start: int, stop: int) -> str:
        return str(math.prod(self.full[start:stop]))


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a loop nest is cut into tiles of rows or lanes (down) by columns (across), one or more to a program."""

    nest: Geometry
    down: int
    across: int
    is_looped: bool

    @classmethod
    def of(cls, nest: Geometry) -> Self:
        """The tiles for reductions along the columns.

        Raises:
            Unsupported: if so few programs would have to do so much each that a library's kernel is faster.
        """
        rows, m, n = sizes(nest)
        down = min(power_of_two(n), LANES) if n > 1 else max(1, min(16, BLOCK // power_of_two(m), rows // 512))
        down = 1 << (down.bit_length() - 1)
        is_looped = down * power_of_two(m) > MOST_WHOLE
        tiling = cls(nest, down, LOOPED // down if is_looped else power_of_two(m), is_looped)
        if tiling.programs < FEW_PROGRAMS and m * rows * n > FEW_PROGRAMS * MOST_WHOLE:
            raise Unsupported("too few programs")
        return tiling

    @property
    def programs(self) -> int:
        rows, _, n = sizes(self.nest)
        return rows * -(-n // self.down) if n > 1 else -(-rows // self.down)

    @property
    def warps(self) -> int:
        elements = self.down * self.across
        return 4 if elements <= 2048 else 8 if elements <= 4096 else 16

    def places(self, first: str) -> list[str]:
        """Lines that say which rows and lanes are this program's; `first` is its number."""
        _, _, n = sizes(self.nest)
        if n == 1:
            return [f"r = {first} * {self.down} + tl.arange(0, {self.down})[:, None]"]
        blocks = -(-n // self.down)
        return [
            f"r = {first} // {blocks}",
            f"i = {first} % {blocks} * {self.down} + tl.arange(0, {self.down})[:, None]",
        ]


def sizes(nest: Geometry) -> tuple[int, int, int]:
    """Numbers of rows, of columns and of lanes."""
    full = nest.full
    return math.prod(full[: nest.first]), math.prod(full[nest.first : nest.stop]), math.prod(full[nest.stop :])


def power_of_two(size: int) -> int:
    """The least that is not smaller."""
    return 1 << (size - 1).bit_length()
