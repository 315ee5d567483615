"""One Triton kernel for one set of shapes: for elementwise operations and reductions, a scan, or a position."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tasks.variants.kernels.geometry import geometry
from tasks.variants.kernels.kernel import with_kept_dimensions
from tasks.variants.kernels.nodes import Carried, Leaf, Node, Unsupported, Window, children, contains, walk
from tasks.variants.kernels.operators import without_needless_checks
from tasks.variants.kernels.positions import Position
from tasks.variants.kernels.scans import Cumulation
from tasks.variants.kernels.tiling import Fixed
from tasks.variants.kernels.triton_writer import SCALAR, TritonWriter
from tasks.variants.kernels.values import Shape

_RESERVED = {
    "m", "n", "r", "c", "i", "x", "at", "out", "tl", "triton", "libdevice", "float", "start", "lane", "self", "block",
    "carry", "extreme", "place", "bits", "key", "top", "first", "k0", "k1", "k2", "range",
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
    out_dtype: str = "torch.float32"


def triton_kernel_for(root: Node, name: str) -> TritonKernel:
    """The kernel that computes a tree; it reads and writes contiguous float32 tensors of just these shapes.

    Raises:
        Unsupported: if no tiles of ours compute it, or not fast.
    """
    kept, reduced, full = with_kept_dimensions(without_needless_checks(root))
    if contains(kept, Carried):
        raise Unsupported("a loop")
    tensors, scalars = _read(kept)
    outside = [(leaf.text, leaf.shape) for leaf in _outside_windows(kept) if leaf in tensors]
    plain = geometry(full, reduced, outside)
    nest = Fixed(plain.full, plain.first, plain.stop, plain.tensors)
    writer = TritonWriter(nest, _names([*tensors, *scalars]), kept, reduced is not None)
    writer.write()
    return _kernel(writer, name, tensors, scalars, root.shape)


def triton_kernel_for_scan(scan: Cumulation, name: str) -> TritonKernel:
    """The kernel of a cumulative sum or product, whose blocks along the dimension follow each other in one program.

    Raises:
        Unsupported: likewise.
    """
    tensors, scalars = _read(scan.argument)
    nest = Fixed(scan.full, scan.dim, scan.dim + 1, tuple((leaf.text, leaf.shape) for leaf in tensors))
    writer = TritonWriter(nest, _names([*tensors, *scalars]), Leaf("out", scan.full), is_reduced=True)
    writer.write_scan(scan)
    return _kernel(writer, name, tensors, scalars, scan.full)


def triton_kernel_for_position(position: Position, name: str) -> TritonKernel:
    """The kernel that finds where an extremum is.

    Raises:
        Unsupported: likewise.
    """
    leaf = position.argument
    nest = Fixed(leaf.shape, position.dim, position.dim + 1, ((leaf.text, leaf.shape),))
    writer = TritonWriter(nest, _names([leaf]), Leaf("out", position.kept), is_reduced=True)
    writer.write_position(position)
    return _kernel(writer, name, [leaf], [], position.shape, out_dtype="torch.int64")


def _kernel(
    writer: TritonWriter,
    name: str,
    tensors: Sequence[Leaf],
    scalars: Sequence[Leaf],
    out_shape: Shape,
    *,
    out_dtype: str = "torch.float32",
) -> TritonKernel:
    parameters = tuple(writer.leaf_names[leaf] for leaf in (*tensors, *scalars))
    head = ["@triton.jit", f"def {name}({', '.join((*parameters, 'out'))}):"]
    return TritonKernel(
        lines=(*head, *(f"    {line}" for line in writer.lines)),
        tensors=tuple(tensors),
        scalars=tuple(SCALAR.fullmatch(leaf.text)[1] for leaf in scalars),  # type: ignore[index]
        parameters=parameters,
        programs=writer.programs,
        warps=writer.warps,
        out_shape=out_shape,
        out_dtype=out_dtype,
    )


def _outside_windows(root: Node) -> Iterator[Leaf]:
    """The leaves that a tree reads at the place of each element."""
    todo, seen = [root], set[Node]()
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            if isinstance(node, Leaf):
                yield node
            elif not isinstance(node, Window):
                todo += children(node)


def _read(root: Node) -> tuple[list[Leaf], list[Leaf]]:
    """The tensors that a tree reads, and the leaves that are numbers.

    Raises:
        Unsupported: if there are no tensors.
    """
    leaves = [node for node in walk(root) if isinstance(node, Leaf)]
    tensors = [leaf for leaf in leaves if not SCALAR.fullmatch(leaf.text)]
    if not tensors:
        raise Unsupported("nothing to read")
    return tensors, [leaf for leaf in leaves if leaf not in tensors]


def _names(leaves: Sequence[Leaf]) -> dict[Leaf, str]:
    names: dict[Leaf, str] = {}
    for leaf in leaves:
        word = re.sub(r"\W+", "_", leaf.text.rsplit(".", 1)[-1]).strip("_") or "x"
        name = word if word.isidentifier() and len(word) < 16 else "x"
        while name in _RESERVED or name in names.values() or re.fullmatch(r"(v|total)\d+", name):
            name += "_in"
        names[leaf] = name
    return names
