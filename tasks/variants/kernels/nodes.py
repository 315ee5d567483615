"""Expressions that C can compute element by element or row by row, as trees."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tasks.variants.kernels.values import Shape, broadcast

Kind = Literal["sum", "max", "min"]


class Unsupported(Exception):
    """This part of a program is not something the kernels can compute."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A tensor that comes from outside the kernel."""

    text: str
    """Its Python expression, such as "x" or "self.weight"."""
    shape: Shape


@dataclass(frozen=True, slots=True)
class Number:
    value: float
    shape: Shape = ()


@dataclass(frozen=True, slots=True)
class Op:
    """An elementwise operation; "{0}" in its C template is the first argument, and text.py says what "{0:1}" is."""

    template: str
    arguments: "tuple[Node, ...]"
    shape: Shape
    is_boolean: bool = False
    _hash: int = field(init=False, repr=False, compare=False)
    """Once for all: what every step uses twice occurs twice as often with every step."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.template, self.arguments, self.shape, self.is_boolean)))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Reduce:
    """A sum or an extremum over the dimensions from `first` up to `stop`."""

    kind: Kind
    argument: "Node"
    first: int
    stop: int
    shape: Shape


@dataclass(frozen=True, slots=True)
class Loop:
    """An elementwise loop `for k in range(start, stop)` over values it carries from turn to turn."""

    header: str
    """In C."""
    initial: "tuple[tuple[str, Node], ...]"
    """What the carried values start as."""
    updates: "tuple[tuple[str, Node], ...]"
    """Assignments of the body in order; what it assigns is read as an Op without arguments, its template the name."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What a loop leaves in one of its values."""

    loop: Loop
    name: str
    shape: Shape


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """What is made of the values under a window that goes over the places of [batch, channels, *places].

    Their maximum, their mean, or the sum of each times a weight of its channel.
    """

    kind: Literal["max", "mean", "weighted"]
    argument: "Node"
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    shape: Shape
    weight: Leaf | None = None
    """[channels, 1, *kernel]; only of a weighted one."""


Node = Leaf | Number | Op | Reduce | Carried | Window


def operate(template: str, *arguments: Node, is_boolean: bool = False) -> Op:
    """An elementwise operation on arguments that must fit each other.

    Raises:
        Unsupported: if their shapes do not broadcast.
    """
    shape = broadcast((), *(argument.shape for argument in arguments))
    if shape is None:
        raise Unsupported("shapes that do not broadcast")
    return Op(template, arguments, shape, is_boolean)


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Op():
            return node.arguments
        case Window(weight=Leaf() as weight):
            return (node.argument, weight)
        case Reduce() | Window():
            return (node.argument,)
        case Carried():
            return (*(start for _, start in node.loop.initial), *_outside(node.loop))
    return ()


def walk(node: Node) -> Iterator[Node]:
    """Every distinct node of the tree, arguments before what uses them."""
    seen: set[Node] = set()

    def visit(current: Node) -> Iterator[Node]:
        if current not in seen:
            seen.add(current)
            for child in children(current):
                yield from visit(child)
            yield current

    yield from visit(node)


def contains(root: Node, kind: type[Node]) -> bool:
    """Whether there is a node of that class in the tree."""
    return any(isinstance(node, kind) for node in walk(root))


def _outside(loop: Loop) -> Iterator[Node]:
    """The largest parts of a loop's body that do not change from turn to turn and are not mere names or numbers."""

    def visit(node: Node) -> Iterator[Node]:
        if not any(isinstance(part, Op) and not part.arguments for part in walk(node)):
            if not isinstance(node, Number):
                yield node
        else:
            for child in children(node):
                yield from visit(child)

    for _, update in loop.updates:
        yield from visit(update)


def replaced(node: Node, changes: Mapping[Node, Node]) -> Node:
    """The tree with some of its parts exchanged for others of equal shape; loops and windows stay as they are."""
    done: dict[Node, Node] = {}

    def visit(current: Node) -> Node:
        if current not in done:
            done[current] = visit(changes[current]) if current in changes else _with_parts(current, visit)
        return done[current]

    return visit(node)


def _with_parts(node: Node, changed: Callable[[Node], Node]) -> Node:
    match node:
        case Op():
            return Op(node.template, tuple(map(changed, node.arguments)), node.shape, node.is_boolean)
        case Reduce():
            return Reduce(node.kind, changed(node.argument), node.first, node.stop, node.shape)
    return node
