"""One kernel: its C function, and the Python around its call."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from tasks.variants.kernels.geometry import Geometry, geometry
from tasks.variants.kernels.nodes import Carried, Leaf, Node, Op, Reduce, Unsupported, children, operate, walk
from tasks.variants.kernels.operators import without_needless_checks
from tasks.variants.kernels.regions import Region
from tasks.variants.kernels.source import Writer
from tasks.variants.kernels.steps import natural
from tasks.variants.kernels.text import mentioned
from tasks.variants.kernels.values import Shape

RESERVED = {"m", "n", "r", "c", "i", "k", "t", "rows", "out", "run", "float", "double", "long", "int", "for"}


@dataclass(frozen=True, slots=True)
class Kernel:
    source: str
    """The C function `run`."""
    forward: tuple[str, ...]
    """Lines of the new forward."""


def kernel_for(region: Region) -> Kernel:
    """The kernel that replaces a region.

    Raises:
        Unsupported: if no loop nest of ours computes it.
    """
    root, reduced, full = with_kept_dimensions(without_needless_checks(region.root))
    leaves = [node for node in walk(root) if isinstance(node, Leaf)]
    loops = {node.loop for node in walk(root) if isinstance(node, Carried)}
    if not leaves or len(loops) > 1:
        raise Unsupported("nothing to read, or several loops whose names may clash")
    interface = Interface.of(leaves, region.site.before, region.site.after)
    nest = geometry(full, reduced, interface.tensors)
    elements = interface.elements(nest)
    body = Writer(nest, elements, root).body()
    return interface.kernel(body, nest, target=region.site.target, out_shape=_out_shape(region.root, nest))


@dataclass(frozen=True, slots=True)
class Interface:
    """What the kernel's tensors and sizes are called in Python and in C, and the lines around the kernel."""

    python_names: dict[Leaf, str]
    c_names: dict[Leaf, str]
    sizes: dict[str, str]
    """C names of sizes by their Python expressions; grows with what the indices need."""
    before: tuple[str, ...]
    after: tuple[str, ...]

    @classmethod
    def of(
        cls, leaves: Sequence[Leaf], before: Sequence[str], after: Sequence[str], *, reserved: Sequence[str] = ()
    ) -> Self:
        """Names for some tensors, none of them `reserved` for what the kernel computes itself."""
        python_names, setup = _python_names(leaves, taken={*reserved, *_identifiers("\n".join((*before, *after)))})
        return cls(python_names, _c_names(python_names, {*reserved, *RESERVED}), {}, (*before, *setup), tuple(after))

    @property
    def tensors(self) -> list[tuple[str, Shape]]:
        return [(name, leaf.shape) for leaf, name in self.python_names.items()]

    def elements(self, nest: Geometry) -> dict[Leaf, str]:
        """C expressions of every tensor's current element."""
        self.sizes.update({expression: name for name, expression in reversed(nest.sizes().items())})

        def size_of(expression: str) -> str:
            return self.sizes.setdefault(expression, f"size{len(self.sizes)}")

        return {leaf: f"{name}[{nest.element(leaf, size_of)}]" for leaf, name in self.c_names.items()}

    def kernel(self, body: Sequence[str], nest: Geometry, *, target: str | None, out_shape: str) -> Kernel:
        """The kernel with a body; its result is returned where it has no target."""
        expressions = nest.sizes() | {name: expression for expression, name in self.sizes.items()}
        used = mentioned(expressions, "\n".join(body))
        pointers = [f"const float *restrict {name}" for name in self.c_names.values()]
        parameters = [*pointers, "float *restrict out", *(f"long {name}" for name in used)]
        source = "\n".join([f"void run({', '.join(parameters)}) {{", *body, "}"])
        taken = set(self.python_names.values())
        is_last = target is None or self.after == (f"return {target}",)
        out = next(name for name in ("out", "y", "z") if name not in taken) if is_last else str(target)
        tensors = ", ".join([*self.python_names.values(), out])
        call = ", ".join([f"({tensors})", *(expressions[name] for name in used)])
        lines = [*self.before, f"{out} = torch.empty({out_shape})", f"run({call})"]
        return Kernel(source, tuple(natural([*lines, *([f"return {out}"] if is_last else self.after)])))


def with_kept_dimensions(root: Node) -> tuple[Node, tuple[int, int] | None, Shape]:
    """The tree with reduced dimensions kept as 1, which dimensions those are, and the shape before reducing."""
    reduces = [node for node in walk(root) if isinstance(node, Reduce)]
    if not reduces:
        return root, None, root.shape
    full = reduces[0].argument.shape
    block = (reduces[0].first, reduces[0].stop)
    kept = (*full[: block[0]], *(1,) * (block[1] - block[0]), *full[block[1] :])
    flat = full[: block[0]] + full[block[1] :]
    if any(node.argument.shape != full or (node.first, node.stop) != block for node in reduces):
        raise Unsupported("reductions over different dimensions")
    if root.shape not in (full, kept, flat):
        raise Unsupported("more than rows and what they reduce to")
    if root.shape == flat and flat != kept:
        return _keeping(root, kept), block, full
    if any(node.shape != kept and math.prod(node.shape) > 1 for node in reduces):
        raise Unsupported("a reduced tensor lined up with columns")
    return root, block, full


def _keeping(node: Node, kept: Shape) -> Node:
    match node:
        case Reduce():
            return Reduce(node.kind, node.argument, node.first, node.stop, kept)
        case Op():
            return operate(node.template, *(_keeping(argument, kept) for argument in children(node)))
        case _ if math.prod(node.shape) > 1:
            raise Unsupported("a tensor lined up with reduced rows")
    return node


def _python_names(leaves: Iterable[Leaf], *, taken: set[str]) -> tuple[dict[Leaf, str], list[str]]:
    """What the forward calls each tensor; those that are expressions get a name, and a line that gives it."""
    names, setup = {}, []
    for leaf in leaves:
        if re.fullmatch(r"(self\.)?[\w.]+", leaf.text):
            names[leaf] = leaf.text
            continue
        fresh = next(name for name in ("h", *(f"h{i}" for i in range(1, 99))) if name not in taken)
        taken.add(fresh)
        names[leaf] = fresh
        setup.append(f"{fresh} = {leaf.text}")
    return names, setup


def _c_names(python_names: dict[Leaf, str], reserved: set[str]) -> dict[Leaf, str]:
    names: dict[Leaf, str] = {}
    for leaf, python_name in python_names.items():
        name = python_name.rsplit(".")[-1]
        while name in reserved or name in names.values() or re.fullmatch(r"[sv]\d+|size\d+", name):
            name += "_in"
        names[leaf] = name
    return names


def _out_shape(root: Node, nest: Geometry) -> str:
    """Python for the arguments of torch.empty."""
    rank = len(nest.full)
    if root.shape == nest.full:
        return nest.shape(0, rank)
    if len(root.shape) < rank:
        parts = [part for part in ((0, nest.first), (nest.stop, rank)) if part[0] < part[1]]
        return (" + " if nest.has_full else ", ").join(nest.shape(*part) for part in parts) or "()"
    return ", ".join("1" if nest.first <= dim < nest.stop else nest.dimension(dim) for dim in range(rank))


def _identifiers(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text))
