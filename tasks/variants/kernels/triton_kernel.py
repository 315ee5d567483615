"""Writes one Triton kernel, made for one set of shapes: for elementwise operations and reductions, or for a scan."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tasks.variants.kernels.geometry import geometry
from tasks.variants.kernels.kernel import with_kept_dimensions
from tasks.variants.kernels.nodes import Carried, Leaf, Node, Number, Op, Reduce, Unsupported, children, walk
from tasks.variants.kernels.operators import without_needless_checks
from tasks.variants.kernels.scans import Cumulation
from tasks.variants.kernels.source import phases
from tasks.variants.kernels.text import Text
from tasks.variants.kernels.tiling import BLOCK, Fixed, Tiling, sizes
from tasks.variants.kernels.triton_text import in_triton, index_in_triton
from tasks.variants.kernels.values import Shape

WIDE = 1 << 31
_START = {"sum": "0.0", "max": 'float("-inf")', "min": 'float("inf")'}
_STEP = {"sum": "{0} + {1}", "max": "tl.maximum({0}, {1})", "min": "tl.minimum({0}, {1})"}
_SCANS = {"cumsum": ("0.0", "{0} + {1}"), "cumprod": ("1.0", "{0} * {1}")}
_SCALAR = re.compile(r"torch\.tensor\((float\(.*\))\)")
_RESERVED = {
    "m", "n", "r", "c", "i", "x", "at", "out", "tl", "triton", "libdevice", "float", "start", "lane", "self", "block",
    "carry",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TritonKernel:
    lines: tuple[str, ...]
    """Parameters are the tensors, scalars and the output in this order."""
    tensors: tuple[Leaf, ...]
    scalars: tuple[str, ...]
    """Python expressions of numbers."""
    parameters: tuple[str, ...]
    programs: int
    warps: int
    out_shape: Shape


def triton_kernel_for(root: Node, name: str) -> TritonKernel:
    """The kernel that computes a tree; it reads and writes contiguous float32 tensors of just these shapes.

    Raises:
        Unsupported: if no tiles of ours compute it, or not fast.
    """
    kept, reduced, full = with_kept_dimensions(without_needless_checks(root))
    if any(isinstance(node, Carried) for node in walk(kept)):
        raise Unsupported("a loop")
    tensors, scalars = _read(kept)
    plain = geometry(full, reduced, [(leaf.text, leaf.shape) for leaf in tensors])
    nest = Fixed(plain.full, plain.first, plain.stop, plain.tensors)
    writer = _Writer(nest, _names([*tensors, *scalars]), kept, reduced is not None)
    writer.write()
    return writer.kernel(name, tensors, scalars, root.shape)


def triton_kernel_for_scan(scan: Cumulation, name: str) -> TritonKernel:
    """The kernel of a cumulative sum or product, whose blocks along the dimension follow each other in one program.

    Raises:
        Unsupported: likewise.
    """
    tensors, scalars = _read(scan.argument)
    nest = Fixed(scan.full, scan.dim, scan.dim + 1, tuple((leaf.text, leaf.shape) for leaf in tensors))
    writer = _Writer(nest, _names([*tensors, *scalars]), Leaf("out", scan.full), is_reduced=True)
    writer.write_scan(scan)
    return writer.kernel(name, tensors, scalars, scan.full)


def _read(root: Node) -> tuple[list[Leaf], list[Leaf]]:
    """The tensors that a tree reads, and the leaves that are numbers.

    Raises:
        Unsupported: if there are no tensors.
    """
    leaves = [node for node in walk(root) if isinstance(node, Leaf)]
    tensors = [leaf for leaf in leaves if not _SCALAR.fullmatch(leaf.text)]
    if not tensors:
        raise Unsupported("nothing to read")
    return tensors, [leaf for leaf in leaves if leaf not in tensors]


@dataclass(slots=True)
class _Writer:
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

    def kernel(self, name: str, tensors: Sequence[Leaf], scalars: Sequence[Leaf], out_shape: Shape) -> TritonKernel:
        """The kernel that has been written."""
        parameters = tuple(self.leaf_names[leaf] for leaf in (*tensors, *scalars))
        head = ["@triton.jit", f"def {name}({', '.join((*parameters, 'out'))}):"]
        return TritonKernel(
            lines=(*head, *(f"    {line}" for line in self.lines)),
            tensors=tuple(tensors),
            scalars=tuple(_SCALAR.fullmatch(leaf.text)[1] for leaf in scalars),  # type: ignore[index]
            parameters=parameters,
            programs=self.programs,
            warps=self.warps,
            out_shape=out_shape,
        )

    @property
    def _first(self) -> str:
        """The number of the program, wide enough for places in memory."""
        return "tl.program_id(0)" + (".to(tl.int64)" if math.prod(self.nest.full) >= WIDE else "")

    def _flat(self) -> None:
        """All elements in a row."""
        total, (_, m, _) = math.prod(self.nest.full), sizes(self.nest)
        self.programs = -(-total // BLOCK)
        self.line(f"at = {self._first} * {BLOCK} + tl.arange(0, {BLOCK})")
        if self.nest.has_rows:
            self.line(f"r = at // {m}")
        if m > 1:
            self.line(f"c = at % {m}" if self.nest.has_rows else "c = at")
        self._store()

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
        value = self.value(self.root)
        at, mask = self._place(Leaf("out", self.root.shape))
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
            case Leaf(text=text) if _SCALAR.fullmatch(text):
                return self.leaf_names[node]
            case Leaf():
                at, mask = self._place(node)
                return self._named(node, f"tl.load({self.leaf_names[node]} + {at}{f', mask={mask}' if mask else ''})")
            case Op():
                operands = [Text(self.value(part)) for part in children(node)]
                text = re.sub(r"\bm\b", f"{sizes(self.nest)[1]}.0f", node.template.format(*operands))
                return self._named(node, in_triton(text))
        raise Unsupported(f"{type(node).__name__} where a value is needed")

    def _place(self, leaf: Leaf) -> tuple[str, str]:
        """Where the element of a tensor lies, and the condition that there is one."""
        rows, m, n = sizes(self.nest)
        if not self.is_reduced and leaf.shape == self.nest.full:
            return "at", f"at < {math.prod(leaf.shape)}"
        index = index_in_triton(self.nest.element(leaf, str), {"m": m, "n": n})
        if not self.is_reduced:
            return index, f"at < {math.prod(self.nest.full)}" if re.search(r"\b[rc]\b", index) else ""
        inside = {"r": rows, "c": m, "i": n}
        wanted = [name for name in inside if re.search(rf"\b{name}\b", index) and not (name == "r" and n > 1)]
        return index, " & ".join(f"({name} < {inside[name]})" for name in wanted)

    def _varies(self, node: Node) -> bool:
        return self.nest.varies(node.shape, over="columns")

    def _named(self, node: Node, text: str) -> str:
        name = f"v{self.variables}"
        self.variables += 1
        self.line(f"{name} = {text}")
        self.names[node] = name
        return name

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)


def _names(leaves: Sequence[Leaf]) -> dict[Leaf, str]:
    names: dict[Leaf, str] = {}
    for leaf in leaves:
        word = re.sub(r"\W+", "_", leaf.text.rsplit(".", 1)[-1]).strip("_") or "x"
        name = word if word.isidentifier() and len(word) < 16 else "x"
        while name in _RESERVED or name in names.values() or re.fullmatch(r"(v|total)\d+", name):
            name += "_in"
        names[leaf] = name
    return names
