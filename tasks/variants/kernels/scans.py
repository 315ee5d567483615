"""Values that are carried along a dimension: cumulative sums and products, and recurrences written as loops."""

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tasks.variants.kernels.calls import torch_call
from tasks.variants.kernels.geometry import Geometry
from tasks.variants.kernels.kernel import RESERVED, Interface, Kernel
from tasks.variants.kernels.model import Model
from tasks.variants.kernels.nodes import Leaf, Node, Op, Reduce, Unsupported, contains, walk
from tasks.variants.kernels.operators import BINARY
from tasks.variants.kernels.reader import Reader
from tasks.variants.kernels.shapes import Shapes
from tasks.variants.kernels.source import Writer
from tasks.variants.kernels.steps import Site, Step, single_assignment
from tasks.variants.kernels.values import Shape

_CUMULATIVE = {"cumsum": (0.0, BINARY["add"]), "cumprod": (1.0, BINARY["mul"])}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cumulation:
    """A cumulative sum or product along one dimension of a full shape, and the steps that it is written in."""

    kind: str
    """"cumsum" or "cumprod"."""
    argument: Node
    full: Shape
    dim: int
    backwards: bool
    site: Site


@dataclass(frozen=True, kw_only=True, slots=True)
class Scan:
    """States that are carried along one dimension of a full shape."""

    full: Shape
    dim: int
    backwards: bool
    initial: tuple[tuple[str, float], ...]
    """The states, and what they start as."""
    updates: tuple[tuple[str, Node], ...]
    """Assignments of one turn in order; in them, states and temporaries are Ops without arguments."""
    result: str
    """Which of them the output holds, turn by turn."""
    kind: str
    """The C type of the states."""
    before: tuple[str, ...]
    target: str | None
    after: tuple[str, ...]


def kernel_for_scan(scan: Scan) -> Kernel:
    """The kernel of a scan.

    Raises:
        Unsupported: if a tensor does not run along with it.
    """
    leaves = list(dict.fromkeys(n for _, update in scan.updates for n in walk(update) if isinstance(n, Leaf)))
    if not any(leaf.shape == scan.full for leaf in leaves):
        raise Unsupported("nothing to scan")
    own = [name for name, _ in scan.updates]
    if RESERVED & {*own}:
        raise Unsupported("a state that is called like a loop's counter")
    interface = Interface.of(leaves, scan.before, scan.after, reserved=own)
    nest = Geometry(scan.full, scan.dim, scan.dim + 1, tuple(interface.tensors))
    writer = Writer(nest, interface.elements(nest), Leaf("out", scan.full))
    _write(scan, nest, writer)
    return interface.kernel(writer.lines, nest, target=scan.target, out_shape=nest.shape(0, len(scan.full)))


def _write(scan: Scan, nest: Geometry, writer: Writer) -> None:
    if nest.has_rows:
        writer.line("#pragma omp parallel for", depth=0)
        writer.open("for (long r = 0; r < rows; r++) {")
    for name, start in scan.initial:
        if nest.has_lanes:
            writer.line(f"{scan.kind} {name}[n];")
            writer.line(f"for (long i = 0; i < n; i++) {name}[i] = {start!r}f;")
        else:
            writer.line(f"{scan.kind} {name} = {start!r}f;")
    header = "long c = m - 1; c >= 0; c--" if scan.backwards else "long c = 0; c < m; c++"
    writer.open(f"for ({header}) {{")
    if nest.has_lanes:
        writer.line("#pragma omp simd simdlen(16)", depth=0)
        writer.open("for (long i = 0; i < n; i++) {")
    declared = {name for name, _ in scan.initial}
    lanes = "[i]" if nest.has_lanes else ""
    states = {name: name + lanes for name in declared}
    for name, update in scan.updates:
        for node in walk(update):
            if isinstance(node, Op) and not node.arguments:
                writer.names[node] = states.get(node.template, node.template)
        writer.statements([("{0} = {1};", states.get(name, f"float {name}"), update)])
        writer.names.clear()
    writer.line(f"{writer.out()} = {states.get(scan.result, scan.result)};")
    for _ in range(1 + nest.has_lanes + nest.has_rows):
        writer.close()


def cumulation(model: Model) -> Cumulation | None:
    """The last cumsum or cumprod of a forward, with the flips around it that make it run backwards."""
    steps = single_assignment(model)
    if steps is None or any(step.bound for step in steps):
        return None
    shapes = Shapes(dict(model.shapes.values))
    for step in steps:
        if step.targets:
            shapes.bind(step.targets, step.value)  # type: ignore[arg-type]
    for place in reversed(range(len(steps))):
        found = _cumulation_at(place, model, steps, shapes)
        if found is not None:
            return found
    return None


def scan_of(cumulation: Cumulation) -> Scan:
    """The scan whose state is the total so far."""
    start, template = _CUMULATIVE[cumulation.kind]
    update = Op(template, (Op("total", (), cumulation.full), cumulation.argument), cumulation.full)
    return Scan(
        full=cumulation.full,
        dim=cumulation.dim,
        backwards=cumulation.backwards,
        initial=(("total", start),),
        updates=(("total", update),),
        result="total",
        kind="double",
        before=cumulation.site.before,
        target=cumulation.site.target,
        after=cumulation.site.after,
    )


def _cumulation_at(place: int, model: Model, steps: list[Step], shapes: Shapes) -> Cumulation | None:
    call = torch_call(steps[place].value) if steps[place].is_value else None  # type: ignore[arg-type]
    is_flipped = call is not None and call.name == "flip"
    if call is not None and is_flipped:
        call = torch_call(call.operands[0]) if call.operands else None
    if call is None or call.name not in _CUMULATIVE or not call.operands or set(call.keywords) - {"dim"}:
        return None
    dim = shapes.of(call.argument(1, "dim"))
    full = shapes.shape(call.operands[0])
    if full is None or not isinstance(dim, int) or not full:
        return None
    dim %= len(full)
    flipped = partial(_flipped, shapes=shapes, dim=dim, rank=len(full))
    before, after = (
        _flip_before(place, call.operands[0], steps, flipped),
        _flip_after(place, is_flipped, steps, flipped),
    )
    if is_flipped and (before is None or after is None):
        return None
    backwards = before is not None and after is not None
    first, source = before if before and backwards else (place, call.operands[0])
    last = after if after is not None and backwards else place
    kept = [*steps[:first], *steps[last + 1 :]]
    if any(step.reads() & {name for one in steps[first:last] for name in one.targets} for step in kept):
        return None
    try:
        argument = Reader(shapes, {}).read(source)
    except Unsupported:
        return None
    if contains(argument, Reduce):
        argument = Leaf(ast.unparse(source), full)
    site = Site.of(model, steps, range(first, last + 1))
    return Cumulation(kind=call.name, argument=argument, full=full, dim=dim, backwards=backwards, site=site)


def _flip_before(
    place: int, source: ast.expr, steps: Sequence[Step], flipped: Callable[[ast.AST], ast.expr | None]
) -> tuple[int, ast.expr] | None:
    """The step with the flip of what is added up, and what is flipped there."""
    if (inner := flipped(source)) is not None:
        return place, inner
    if place and _is_target(source, steps[place - 1]) and (inner := flipped(steps[place - 1].value)) is not None:
        return place - 1, inner
    return None


def _flip_after(
    place: int, is_flipped: bool, steps: Sequence[Step], flipped: Callable[[ast.AST], ast.expr | None]
) -> int | None:
    """The step with the flip of the sums."""
    if is_flipped:
        return place if flipped(steps[place].value) is not None else None
    if place + 1 < len(steps) and steps[place + 1].is_value:
        inner = flipped(steps[place + 1].value)
        return place + 1 if inner is not None and _is_target(inner, steps[place]) else None
    return None


def _is_target(expression: ast.expr, step: Step) -> bool:
    return isinstance(expression, ast.Name) and (expression.id,) == step.targets


def _flipped(expression: ast.AST, *, shapes: Shapes, dim: int, rank: int) -> ast.expr | None:
    """What an expression flips along just one dimension, or None where it does something else."""
    call = torch_call(expression)  # type: ignore[arg-type]
    if call is None or call.name != "flip" or not call.operands or len(call.operands) + len(call.keywords) != 2:
        return None
    dims = shapes.of(call.argument(1, "dims"))
    match dims if isinstance(dims, tuple) else (dims,):
        case (int(one),) if one % rank == dim:
            return call.operands[0]
    return None
