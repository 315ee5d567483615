"""Which steps of a forward one kernel can replace: an elementwise or row-wise value and all that leads only to it."""

from collections.abc import Iterator
from dataclasses import dataclass

from tasks.variants.kernels.loops import read_loop
from tasks.variants.kernels.model import Model
from tasks.variants.kernels.nodes import Leaf, Node, Unsupported, walk
from tasks.variants.kernels.reader import Reader, is_computed
from tasks.variants.kernels.shapes import Shapes
from tasks.variants.kernels.steps import Site, Step, single_assignment


@dataclass(frozen=True, slots=True)
class Region:
    """A value that one kernel computes, and the steps that it replaces."""

    root: Node
    site: Site


def regions(model: Model, *, windows: bool = False) -> Iterator[Region]:
    """Every largest region of a forward, the last first; with `windows`, of pooling instead of reductions."""
    steps = single_assignment(model)
    if steps is None:
        return
    shapes, users = _known(model.shapes, steps), _users(steps)
    covered: set[int] = set()
    for last in reversed(range(len(steps))):
        is_open = last not in covered and _may_be_replaced(steps[last])
        members = _members(last, steps, users, shapes, windows) if is_open else None
        if members is None:
            continue
        places, root = members
        covered |= places
        if any(step.bound for place, step in enumerate(steps) if place not in places):
            continue
        yield Region(root, Site.of(model, steps, places))


def _known(shapes: Shapes, steps: list[Step]) -> Shapes:
    known = Shapes(dict(shapes.values))
    for step in steps:
        if step.bound:
            known.values |= {new: known.values.get(step.names.get(old, "")) for old, new in step.bound.items()}
        elif step.targets:
            known.bind(step.targets, step.value)  # type: ignore[arg-type]
    return known


def _users(steps: list[Step]) -> list[set[int]]:
    """For each step, which ones read its results."""
    reads = [step.reads() for step in steps]
    return [{other for other, read in enumerate(reads) if not read.isdisjoint(step.targets)} for step in steps]


def _members(
    last: int, steps: list[Step], users: list[set[int]], shapes: Shapes, windows: bool
) -> tuple[set[int], Node] | None:
    """The steps that the kernel for step `last` takes in, and what it computes; None where that is nothing."""
    outside: set[str] = set()
    while True:
        places = _leading_only_to(last, steps, users, outside)
        nodes: dict[str, Node] = {}
        try:
            for place in sorted(places):
                nodes |= _read(steps[place], Reader(shapes, nodes, windows=windows))
        except Unsupported:
            return None
        root = nodes[steps[last].targets[0] if steps[last].targets else ""]
        leaves = " ".join(node.text for node in walk(root) if isinstance(node, Leaf))
        not_computed = {name for name, node in nodes.items() if name and isinstance(node, Leaf)}
        mentioned = {name for name in nodes if name and name in _names(leaves)}
        if not is_computed(root) or root.shape != shapes.shape(steps[last].value):  # type: ignore[arg-type]
            return None
        if not (mentioned | not_computed) - outside:
            return places, root
        outside |= mentioned | not_computed


def _leading_only_to(last: int, steps: list[Step], users: list[set[int]], outside: set[str]) -> set[int]:
    """The step itself and those before it whose results nothing else reads."""
    places = {last}
    for place in reversed(range(last)):
        leads_there = bool(users[place]) and users[place] <= places and outside.isdisjoint(steps[place].targets)
        if leads_there and _may_be_replaced(steps[place]):
            places.add(place)
    return places


def _may_be_replaced(step: Step) -> bool:
    return step.is_value or bool(step.bound)


def _read(step: Step, reader: Reader) -> dict[str, Node]:
    if step.bound:
        return read_loop(reader, step)
    return {step.targets[0] if step.targets else "": reader.read(step.value)}  # type: ignore[arg-type]


def _names(text: str) -> set[str]:
    return set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())
