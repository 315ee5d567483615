"""What is known of a program's values without executing it: tensors by their shapes, layers by how they were made."""

from dataclasses import dataclass

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    shape: Shape
    is_float: bool = True
    """Whether it is float32; what is not is of no use to the kernels, so its exact type does not matter."""


@dataclass(frozen=True, slots=True)
class Layer:
    """An instance of one of torch.nn's classes, such as Linear."""

    kind: str
    arguments: tuple[object, ...]
    """Values of its positional arguments; None where unknown."""
    keywords: tuple[tuple[str, object], ...] = ()


# A number, a string, a Tensor, a Layer, a tuple of such, or None where nothing is known.
Value = object


def is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_size(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def broadcast(*shapes: Shape) -> Shape | None:
    """The common shape of tensors that are computed with elementwise, or None where they do not fit.

    >>> broadcast((8, 1, 3), (4, 1))
    (8, 4, 3)
    """
    rank = max(len(shape) for shape in shapes)
    columns = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)
    sizes = [set(column) - {1} for column in columns]
    return None if any(len(size) > 1 for size in sizes) else tuple(next(iter(size), 1) for size in sizes)


def reduced(shape: Shape, dims: Value, *, keepdim: bool) -> Shape | None:
    """The shape after a reduction over one dimension, several, or (None) all of them."""
    if dims is None:
        return ()
    chosen = (dims,) if is_size(dims) else dims
    if not isinstance(chosen, tuple) or not all(is_size(dim) and -len(shape) <= dim < len(shape) for dim in chosen):
        return None
    gone = {dim % len(shape) for dim in chosen}
    return tuple(1 if i in gone else size for i, size in enumerate(shape) if keepdim or i not in gone)
