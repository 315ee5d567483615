"""Writes the body of a Triton kernel for one set of shapes: elementwise, a reduction, a window, a scan, a position."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tasks.variants.kernels.nodes import Leaf, Node, Number, Op, Reduce, Unsupported, Window, children
from tasks.variants.kernels.positions import Position
from tasks.variants.kernels.scans import Cumulation
from tasks.variants.kernels.source import phases
from tasks.variants.kernels.text import Text
from tasks.variants.kernels.tiling import BLOCK, Fixed, Tiling, sizes
from tasks.variants.kernels.triton_text import in_triton, index_in_triton
from tasks.variants.kernels.values import Shape

SCALAR = re.compile(r"torch\.tensor\((float\(.*\))\)")
"""A leaf that is a number, and its expression."""
WIDE = 1 << 31
MOST_UNROLLED = 32
LEAST_KEY = -((1 << 31) - 1)
_UNDER = {"max": "max", "mean": "sum", "weighted": "sum"}
_START = {"sum": "0.0", "max": 'float("-inf")', "min": 'float("inf")'}
_STEP = {"sum": "{0} + {1}", "max": "tl.maximum({0}, {1})", "min": "tl.minimum({0}, {1})"}
_SCANS = {"cumsum": ("0.0", "{0} + {1}"), "cumprod": ("1.0", "{0} * {1}")}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Inside:
    """Where the current element under a window is."""

    shape: Shape
    """Of what the window goes over."""
    row: str
    """The variable with its place among batch * channels."""
    places: tuple[str, ...]
    """Those with its other places."""
    mask: str
    """The condition that it exists."""


@dataclass(slots=True)
class TritonWriter:
    """Writes one kernel's body; `names` says what has been computed and what it is called from here on."""

    nest: Fixed
    leaf_names: dict[Leaf, str]
    root: Node
    is_reduced: bool
    names: dict[Node, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    depth: int = 0
    variables: int = 0
    programs: int = 0
    warps: int = 4
    inside: _Inside | None = None

    def write(self) -> None:
        """The lines for the root."""
        if self.is_reduced:
            self._rows(Tiling.of(self.nest))
        else:
            self._flat()

    def write_scan(self, scan: Cumulation) -> None:
        """The lines for a scan, which goes over blocks of columns, from the last where it runs backwards."""
        tiling, m = Tiling.of(self.nest), sizes(self.nest)[1]
        columns, (start, step) = self._begin(tiling), _SCANS[scan.kind]
        blocks = -(-m // tiling.across)
        if tiling.is_looped:
            self.line(f"carry = tl.full([{tiling.down}, 1], {start}, tl.float32)")
            self.line(f"for block in range({blocks}):")
            self.depth += 1
            self.line(f"start = {f'({blocks - 1} - block)' if scan.backwards else 'block'} * {tiling.across}")
        self.line(f"c = start + {columns}" if tiling.is_looped else f"c = {columns}")
        self.line(f"x = tl.where(c < {m}, {self.value(scan.argument)}, {start})")
        self.line(f"x = tl.{scan.kind}(x, axis=1, reverse={scan.backwards})")
        if tiling.is_looped:
            self.line(f"x = {step.format('x', 'carry')}")
            edge = "start" if scan.backwards else f"start + {tiling.across - 1}"
            self.line(f"carry = tl.sum(tl.where(c == {edge}, x, 0.0), axis=1)[:, None]")
        at, mask = self._place(Leaf("out", scan.full))
        self.line(f"tl.store(out + {at}, x, mask={mask})")

    def write_position(self, position: Position) -> None:
        """The lines for the first place of an extremum; a value that is not a number is more extreme than any."""
        tiling, m = Tiling.of(self.nest), sizes(self.nest)[1]
        columns = self._begin(tiling)
        if tiling.is_looped:
            self.line(f"extreme = tl.full([{tiling.down}, 1], {LEAST_KEY}, tl.int32)")
            self.line(f"place = tl.full([{tiling.down}, 1], 0, tl.int32)")
            self.line(f"for start in range(0, {m}, {tiling.across}):")
            self.depth += 1
        self.line(f"c = start + {columns}" if tiling.is_looped else f"c = {columns}")
        value = self.value(position.argument)
        # Whole numbers in the order of the values: the bits of a float are, but for its sign and for one of two zeros.
        self.line(f"x = {value} + 0.0" if position.is_largest else f"x = 0.0 - {value}")
        self.line("bits = tl.cast(x, tl.int32, bitcast=True)")
        self.line(f"key = tl.where(bits < 0, bits ^ {-LEAST_KEY}, bits)")
        self.line(f"key = tl.where(x != x, {-LEAST_KEY}, key)")
        self.line(f"key = tl.where(c < {m}, key, {LEAST_KEY})")
        self.line("top = tl.max(key, axis=1)[:, None]")
        self.line(f"first = tl.min(tl.where(key == top, c, {m}), axis=1)[:, None]")
        if tiling.is_looped:
            self.line("place = tl.where(top > extreme, first, place)")
            self.line("extreme = tl.maximum(extreme, top)")
            self.depth -= 1
        self._store_rows("place" if tiling.is_looped else "first", position.kept)

    @property
    def _first(self) -> str:
        """The number of the program, wide enough for places in memory."""
        largest = max(math.prod(shape) for shape in (self.nest.full, *(leaf.shape for leaf in self.leaf_names)))
        return "tl.program_id(0)" + (".to(tl.int64)" if largest >= WIDE else "")

    def _flat(self) -> None:
        """All elements in a row."""
        total, (_, m, _) = math.prod(self.nest.full), sizes(self.nest)
        self.programs = -(-total // BLOCK)
        self.line(f"at = {self._first} * {BLOCK} + tl.arange(0, {BLOCK})")
        self._store()
        # Where in its row an element is, as far as anything asks for it.
        places = {"r": f"at // {m}", "c": f"at % {m}" if self.nest.has_rows else "at"}
        text = "\n".join(self.lines)
        self.lines[1:1] = [f"{name} = {place}" for name, place in places.items() if re.search(rf"\b{name}\b", text)]

    def _begin(self, tiling: Tiling) -> str:
        """Say which rows or lanes are this program's; the columns of a tile."""
        self.programs, self.warps = tiling.programs, tiling.warps
        for line in tiling.places(self._first):
            self.line(line)
        return f"tl.arange(0, {tiling.across})[None, :]"

    def _rows(self, tiling: Tiling) -> None:
        """Rows, or lanes of them, that are reduced over their columns."""
        columns = self._begin(tiling)
        if not tiling.is_looped:
            self.line(f"c = {columns}")
        for reduces in phases(self.root):
            if tiling.is_looped:
                self._looped(reduces, tiling, columns)
            else:
                for reduce in reduces:
                    self._named(reduce, self._reduced(reduce.kind, self._masked(reduce)))
        if tiling.is_looped and self._varies(self.root):
            self.line(f"for start in range(0, {sizes(self.nest)[1]}, {tiling.across}):")
            self.depth += 1
            self.line(f"c = start + {columns}")
        self._store()

    def _looped(self, reduces: Sequence[Reduce], tiling: Tiling, columns: str) -> None:
        totals = []
        for reduce in reduces:
            totals.append(f"total{self.variables}")
            self.variables += 1
            self.line(f"{totals[-1]} = tl.full([{tiling.down}, {tiling.across}], {_START[reduce.kind]}, tl.float32)")
        self.line(f"for start in range(0, {sizes(self.nest)[1]}, {tiling.across}):")
        outer, self.depth = dict(self.names), self.depth + 1
        self.line(f"c = start + {columns}")
        for reduce, total in zip(reduces, totals, strict=True):
            self.line(f"{total} = {_STEP[reduce.kind].format(total, self._masked(reduce))}")
        self.names, self.depth = outer, self.depth - 1
        for reduce, total in zip(reduces, totals, strict=True):
            self._named(reduce, self._reduced(reduce.kind, total))

    def _masked(self, reduce: Reduce) -> str:
        """The argument with what does not count outside of the row."""
        value, (_, m, _) = self.value(reduce.argument), sizes(self.nest)
        return f"tl.where(c < {m}, ({value}).to(tl.float32), {_START[reduce.kind]})"

    def _reduced(self, kind: str, value: str) -> str:
        return f"tl.{kind}({value}, axis=1)[:, None]"

    def _store(self) -> None:
        self._store_rows(self.value(self.root), self.root.shape)

    def _store_rows(self, value: str, shape: Shape) -> None:
        at, mask = self._place(Leaf("out", shape))
        if self.is_reduced and at == "0":  # one element, where there are rows of tiles
            at, mask = "r", "r < 1"
        self.line(f"tl.store(out + {at}, {value}{f', mask={mask}' if mask else ''})")

    def value(self, node: Node) -> str:
        """A name for a value; lines that compute it are written where there is none yet."""
        if node in self.names:
            return self.names[node]
        match node:
            case Number(value=value):
                return repr(value) if math.isfinite(value) else f'float("{value}")'
            case Leaf(text=text) if SCALAR.fullmatch(text):
                return self.leaf_names[node]
            case Leaf():
                at, mask = self._place(node)
                return self._named(node, f"tl.load({self.leaf_names[node]} + {at}{f', mask={mask}' if mask else ''})")
            case Op():
                operands = [Text(self.value(part)) for part in children(node)]
                text = re.sub(r"\bm\b", f"{sizes(self.nest)[1]}.0f", node.template.format(*operands))
                return self._named(node, in_triton(text))
            case Window():
                self.names[node] = self._windowed(node)
                return self.names[node]
        raise Unsupported(f"{type(node).__name__} where a value is needed")

    def _windowed(self, window: Window) -> str:
        """The name of what is under the window of every element."""
        if self.is_reduced or self.inside or window.shape != self.nest.full:
            raise Unsupported("a window within another, or what is reduced or repeated")
        places, total = window.shape[2:], math.prod(window.shape)
        row = self._let(f"at // {math.prod(places)}")
        below = [math.prod(places[dim + 1 :]) for dim in range(len(places))]
        starts = [
            self._let(f"at // {each} % {size}" if each > 1 else f"at % {size}")
            for each, size in zip(below, places, strict=True)
        ]
        found = self._let(f"tl.full([{BLOCK}], {_START[_UNDER[window.kind]]}, tl.float32)")
        outer, turns, loops = dict(self.names), math.prod(window.kernel), len(places)
        unrolled = "tl.static_range" if turns <= MOST_UNROLLED else "range"
        for dim, size in enumerate(window.kernel):
            self.line(f"for k{dim} in {unrolled}(0, {size}):")
            self.depth += 1
        steps = zip(starts, window.stride, window.dilation, window.padding, strict=True)
        under = tuple(
            self._let(f"{_times(at, s)} + {_times(f'k{dim}', d)}{f' - {p}' if p else ''}")
            for dim, (at, s, d, p) in enumerate(steps)
        )
        padded = zip(under, window.padding, window.argument.shape[2:], strict=True)
        edges = [f"({name} >= 0) & ({name} < {size})" for name, padding, size in padded if padding]
        mask = " & ".join([f"(at < {total})", *edges])
        self.inside = _Inside(shape=window.argument.shape, row=row, places=under, mask=mask)
        self.names = {}
        value = self.value(window.argument)
        if window.kind == "max":  # a NaN is kept, as nothing is larger than it
            taken = " & ".join([*edges, f"(({value} > {found}) | ({value} != {value}))"])
            self.line(f"{found} = tl.where({taken}, {value}, {found})")
        else:
            counted = f"tl.where({' & '.join(edges)}, {value}, 0.0)" if edges else value
            weight = f" * {self._weight(window, window.weight, row, total)}" if window.weight else ""
            self.line(f"{found} += {counted}{weight}")
        self.inside, self.names, self.depth = None, outer, self.depth - loops
        return self._let(f"{found} / {turns}.0") if window.kind == "mean" else found

    def _weight(self, window: Window, weight: Leaf, row: str, total: int) -> str:
        """The name of the weight at the place k0, k1, ... of a window, for the channel of each element."""
        strides = [math.prod(window.kernel[dim + 1 :]) for dim in range(len(window.kernel))]
        place = " + ".join(_times(f"k{dim}", stride) for dim, stride in enumerate(strides))
        at = f"{row} % {window.shape[1]} * {math.prod(window.kernel)} + {place}"
        return self._let(f"tl.load({self.leaf_names[weight]} + {at}, mask=at < {total})")

    def _place(self, leaf: Leaf) -> tuple[str, str]:
        """Where the element of a tensor lies, and the condition that there is one."""
        if self.inside:
            return self._place_inside(leaf, self.inside)
        rows, m, n = sizes(self.nest)
        if not self.is_reduced and leaf.shape == self.nest.full:
            return "at", f"at < {math.prod(leaf.shape)}"
        index = index_in_triton(self.nest.element(leaf, str), {"m": m, "n": n})
        if not self.is_reduced:
            return index, f"at < {math.prod(self.nest.full)}" if re.search(r"\b[rc]\b", index) else ""
        inside = {"r": rows, "c": m, "i": n}
        wanted = [name for name in inside if re.search(rf"\b{name}\b", index) and not (name == "r" and n > 1)]
        return index, " & ".join(f"({name} < {inside[name]})" for name in wanted)

    def _place_inside(self, leaf: Leaf, inside: _Inside) -> tuple[str, str]:
        full = inside.shape
        own = (1,) * (len(full) - len(leaf.shape)) + leaf.shape
        row = {
            (True, True): inside.row,
            (False, True): f"{inside.row} % {full[1]}",
            (True, False): f"{inside.row} // {full[1]}",
        }
        names = [row.get((own[0] > 1, own[1] > 1), "0"), *inside.places]
        extents = [own[0] * own[1], *own[2:]]
        index = [
            _times(f"({name})" if " " in name else name, math.prod(extents[dim + 1 :]))
            for dim, (name, size) in enumerate(zip(names, extents, strict=True))
            if size > 1
        ]
        return (f"({' + '.join(index)})", inside.mask) if index else ("0", "")

    def _varies(self, node: Node) -> bool:
        return self.nest.varies(node.shape, over="columns")

    def _named(self, node: Node, text: str) -> str:
        self.names[node] = self._let(text)
        return self.names[node]

    def _let(self, text: str) -> str:
        """A new variable of that value."""
        name = f"v{self.variables}"
        self.variables += 1
        self.line(f"{name} = {text}")
        return name

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)


def _times(text: str, factor: int) -> str:
    return text if factor == 1 else f"{text} * {factor}"
