"""Shapes and kinds of what terms compute, found without running anything. What is not certain is not known."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

from tasks.variants.names import words
from tasks.variants.rewrites.terms import Term

Shape = tuple[int, ...]
Kind = Literal["float", "integer", "bool"]


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of a known shape, or a Python number (then `number` is set and the shape empty)."""

    shape: Shape
    kind: Kind = "float"
    number: float | int | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)


Infer = Callable[[Term], Value | None]

ENTRYWISE = words(
    "abs exp log log1p expm1 sin cos tanh sigmoid relu silu gelu mish softplus hardswish hardsigmoid erf lgamma "
    "digamma clamp leaky_relu elu selu relu6 logsigmoid softsign i0 i0e sinh cosh sign floor float detach "
    "logit nan_to_num hardtanh masked_fill add mul pow clamp_min clamp_max"
)
"""Functions of single entries."""
KEEPING_SHAPE = ENTRYWISE | words(
    "softmax log_softmax cumsum cumprod flip roll tril triu contiguous dropout layer_norm batch_norm group_norm "
    "instance_norm rms_norm normalize zeros_like ones_like rand_like empty_like full_like identity"
)
"""Functions whose result has the shape of their first argument."""
BROADCASTING = words("add mul pow maximum minimum where lerp addcmul addcdiv atan2 fmod")
COMPARING = words("lt le gt ge eq ne and or")
REDUCING = words("sum mean amax amin prod var std logsumexp norm")
CREATING = words("randn rand zeros ones empty")
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "mul": operator.mul,
    "pow": operator.pow,
    "floordiv": operator.floordiv,
}


def infer(term: Term, of: Infer) -> Value | None:
    """Shape and kind of a term, given those of its arguments."""
    head, args = term.head, term.args
    if term.number is not None:
        return Value((), "float" if isinstance(term.number, float) else "integer", term.number)
    if head in CREATING | {"randint"}:
        return _created(head, args, of)
    if head == "nn.Parameter":
        return of(args[0])
    first = of(args[0]) if args else None
    if head in BROADCASTING | COMPARING | {"floordiv"}:
        values = [of(arg) for arg in args]
        return _folded(head, values) or _broadcast(head, values)
    if first is None:
        return _of_sequence(head, args, of)
    if head in KEEPING_SHAPE:
        return Value(first.shape, first.kind if head in ("contiguous", "flip", "roll", "tril", "triu") else "float")
    if head in REDUCING:
        return _reduced(first, args)
    if head in ("new_zeros", "new_empty", "new_ones"):
        return _created(head, args[1:], of)
    if head == "matmul":
        return _matmul(first, of(args[1]))
    if head == "linear":
        weights = of(args[1])
        return Value((*first.shape[:-1], weights.shape[0])) if weights and weights.rank == 2 else None
    if head == "expand_as":
        return of(args[1])
    if head == "nn.Conv2d":
        return _convolved(first, of(args[2]), args[4:])
    if head == "scaled_dot_product_attention":
        attended = of(args[2])
        return Value((*first.shape[:-1], attended.shape[-1])) if attended else None
    return _rearranged(head, first, args, of)


def broadcast_shape(*shapes: Shape) -> Shape | None:
    rank = max(map(len, shapes), default=0)
    result = []
    for sizes in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True):
        large = set(sizes) - {1}
        if len(large) > 1:
            return None
        result.append(large.pop() if large else 1)
    return tuple(result)


def dimensions(value: Value, term: Term) -> list[int] | None:
    """Which dimensions an argument such as `-1` or `(2, 3)` names, counted from the front."""
    parts = term.args if term.head == "sequence" else (term,)
    if not all(isinstance(part.number, int) for part in parts):
        return None
    return sorted(int(part.number) % max(value.rank, 1) for part in parts if part.number is not None)


def _folded(head: str, values: Sequence[Value | None]) -> Value | None:
    """The value of arithmetic on Python numbers."""
    numbers = [value.number for value in values if value is not None and value.number is not None]
    if len(numbers) < len(values) or head not in _ARITHMETIC:
        return None
    result = reduce(_ARITHMETIC[head], numbers)
    return Value((), "integer" if isinstance(result, int) else "float", result)


def _created(head: str, args: Sequence[Term], of: Infer) -> Value | None:
    sizes: Sequence[Term] = [arg for arg in args if not arg.head.startswith("=")]
    if head == "randint":
        sizes = sizes[-1:]
    if len(sizes) == 1 and sizes[0].head == "sequence":
        sizes = sizes[0].args
    shape = _sizes(sizes, of)
    return Value(shape, "integer" if head == "randint" else "float") if shape is not None else None


def _sizes(sizes: Sequence[Term], of: Infer) -> Shape | None:
    values = [of(size) for size in sizes]
    numbers = [value.number for value in values if value is not None and isinstance(value.number, int)]
    return tuple(int(each) for each in numbers) if len(numbers) == len(sizes) else None


def _broadcast(head: str, values: Sequence[Value | None]) -> Value | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    if all(value.number is not None for value in known):
        return None
    shape = broadcast_shape(*(value.shape for value in known))
    if shape is None:
        return None
    if head in COMPARING:
        return Value(shape, "bool")
    kinds = {value.kind for value in (known[1:] if head == "where" else known)}
    return Value(shape, "float" if "float" in kinds else "integer" if "integer" in kinds else "bool")


def _reduced(value: Value, args: Sequence[Term]) -> Value | None:
    if len(args) == 1:
        return Value(())
    dropped = dimensions(value, args[1])
    if dropped is None:
        return None
    keep = args[-1].head == "True"
    sizes = [(1 if index in dropped else size) for index, size in enumerate(value.shape)]
    return Value(tuple(size for index, size in enumerate(sizes) if keep or index not in dropped))


def _matmul(left: Value, right: Value | None) -> Value | None:
    if right is None or not left.rank or not right.rank:
        return None
    if right.rank == 1:
        return Value(left.shape[:-1])
    if left.rank == 1:
        return Value((*right.shape[:-2], right.shape[-1]))
    batch = broadcast_shape(left.shape[:-2], right.shape[:-2])
    return Value((*batch, left.shape[-2], right.shape[-1])) if batch is not None else None


def _convolved(value: Value, weight: Value | None, options: Sequence[Term]) -> Value | None:
    padding = [option.args[0].number for option in options if option.head == "=padding"]
    if weight is None or len(padding) < len(options) or not all(isinstance(each, int) for each in padding):
        return None
    grown = 2 * int(padding[0] or 0) if padding else 0
    sizes = (size + grown - weight.shape[-1] + 1 for size in value.shape[-2:])
    return Value((value.shape[0], weight.shape[0], *sizes))


def _of_sequence(head: str, args: Sequence[Term], of: Infer) -> Value | None:
    if head not in ("stack", "cat") or not args or args[0].head != "sequence":
        return None
    parts = [of(part) for part in args[0].args]
    dim = args[1].number if len(args) > 1 else 0
    first = parts[0] if parts else None
    if first is None or any(part is None for part in parts) or not isinstance(dim, int):
        return None
    shape = list(first.shape)
    if head == "stack":
        shape.insert(dim % (first.rank + 1), len(parts))
    else:
        shape[dim] = sum(part.shape[dim] for part in parts if part)
    return Value(tuple(shape), first.kind)


def _rearranged(head: str, value: Value, args: Sequence[Term], of: Infer) -> Value | None:
    shape = list(value.shape)
    numbers = [arg.number for arg in args[1:]]
    match head, numbers:
        case "mT", []:
            return Value((*shape[:-2], *reversed(shape[-2:])), value.kind)
        case "transpose", [int(one), int(other)]:
            shape[one], shape[other] = shape[other], shape[one]
            return Value(tuple(shape), value.kind)
        case "unsqueeze", [int(place)]:
            shape.insert(place % (value.rank + 1), 1)
            return Value(tuple(shape), value.kind)
        case "diag", []:
            return Value((shape[0],) * 2) if value.rank == 1 else Value((min(shape),))
        case "diag", [int(offset)]:
            return Value((shape[0] + abs(offset),) * 2) if value.rank == 1 else None
        case "size", [int(place)]:
            return Value((), "integer", shape[place])
    if head == "reshape":
        return _reshaped(value, args[1:], of)
    if head == "index":
        return _indexed(value, args[1:], of)
    return None


def _reshaped(value: Value, sizes: Sequence[Term], of: Infer) -> Value | None:
    if len(sizes) == 1 and sizes[0].head == ".shape":
        like = of(sizes[0].args[0])
        return Value(like.shape, value.kind) if like else None
    shape = _sizes(sizes[0].args if sizes and sizes[0].head == "sequence" else sizes, of)
    if shape is None:
        return None
    count = 1
    for size in value.shape:
        count *= size
    for size in shape:
        count //= size if size > 0 else 1
    return Value(tuple(count if size == -1 else size for size in shape), value.kind)


def _indexed(value: Value, parts: Sequence[Term], of: Infer) -> Value | None:
    shape, rest = [], list(value.shape)
    for part in parts:
        if part.head == "None":
            shape.append(1)
        elif part.head == "slice" and all(bound.head == "" for bound in part.args):
            shape.append(rest.pop(0))
        elif rest and of(part) in (Value((), "integer"), Value((), "integer", part.number)):
            rest.pop(0)
        else:
            return None
    return Value((*shape, *rest), value.kind)
