"""Expressions in a normal form, so that one pattern finds a computation however it was spelt.

`x.softmax(-1)`, `torch.softmax(x, dim=-1)` and `F.softmax(x, -1)` are one term; so are `a - b` and `-b + a`,
`x * x` and `x ** 2`, `1 / torch.sqrt(x)` and `torch.rsqrt(x)`. Sums and products are flat and unordered. A term
remembers the expression it was read from: terms are for finding things, their nodes for writing them down again.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from tasks.variants.layout import parenthesised

UNORDERED = ("add", "mul")


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """Equal terms compute the same up to rounding; where they were read from does not matter."""

    head: str
    """What is done: "add", "softmax", "matmul", ...; the text itself for a name or an attribute."""
    args: tuple["Term", ...] = ()
    number: float | int | None = None
    node: cst.BaseExpression | None = None
    """The expression that spells it, None where no single expression does."""
    through: frozenset[str] = frozenset()
    """Temporaries whose definitions one has to look into to see this head and these arguments."""
    key: int = field(init=False)
    names: frozenset[str] = field(init=False)
    """Heads of what it is made from in the end."""

    def __post_init__(self) -> None:
        keys = sorted(arg.key for arg in self.args) if self.head in UNORDERED else [arg.key for arg in self.args]
        # As text, because -1 and -2 have the same hash.
        value = "" if self.number is None else repr(float(self.number))
        object.__setattr__(self, "key", hash((self.head, value, *keys)))
        names = frozenset().union(*(arg.names for arg in self.args)) if self.args else frozenset({self.head})
        object.__setattr__(self, "names", names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Term) and self.key == other.key

    def __hash__(self) -> int:
        return self.key

    @property
    def is_hole(self) -> bool:
        """Holes stand for anything in a pattern; their names begin with an underscore."""
        return not self.args and self.head.startswith("_")

    def subterms(self) -> Iterable["Term"]:
        """Each once, however often it occurs: one that every step uses twice occurs twice as often with every step."""
        found = {self: None}
        waiting = [self]
        while waiting:
            new = [arg for arg in waiting.pop().args if arg not in found]
            found.update(dict.fromkeys(new))
            waiting += new
        return found


def leaf(text: str, *, node: cst.BaseExpression | None = None) -> Term:
    return Term(text, node=node if node is not None or not text else cst.parse_expression(text))


def number(value: float | int, *, node: cst.BaseExpression | None = None) -> Term:
    return Term("number", number=value, node=node)


def spelt(term: Term, *, node: cst.BaseExpression, temporary: str | None = None) -> Term:
    """The term as another expression spells it, for example as the temporary that holds it."""
    return replace(term, node=node, through=term.through | ({temporary} if temporary else frozenset()))


def total(addends: Sequence[Term], *, node: cst.BaseExpression | None = None, inlinable: frozenset[str]) -> Term:
    """A flat sum; nested sums are merged where they are spelt out or held by an inlinable temporary."""
    flat = _flattened("add", addends, inlinable=inlinable)
    constants = [addend for addend in flat if addend.number is not None]
    rest = [addend for addend in flat if addend.number is None]
    through = _merged_temporaries("add", addends, inlinable=inlinable)
    constant = sum(each.number for each in constants if each.number is not None)
    if constant or not rest:
        rest.append(constants[0] if len(constants) == 1 else number(constant))
    if len(rest) == 1:
        return replace(rest[0], node=node or rest[0].node, through=rest[0].through | through)
    return Term("add", tuple(rest), node=node, through=through)


def product(factors: Sequence[Term], *, node: cst.BaseExpression | None = None, inlinable: frozenset[str]) -> Term:
    """A flat product with its numbers folded into one, first; equal factors become a power."""
    flat = _flattened("mul", factors, inlinable=inlinable)
    coefficients = [factor for factor in flat if factor.number is not None]
    rest: list[Term] = []
    for factor in flat:
        if factor.number is None:
            _multiply_in(rest, factor)
    through = _merged_temporaries("mul", factors, inlinable=inlinable)
    coefficient = math.prod(each.number for each in coefficients if each.number is not None)
    if coefficient != 1 or not rest:
        rest.insert(0, coefficients[0] if len(coefficients) == 1 else number(coefficient))
    if len(rest) == 1:
        return replace(rest[0], node=node or rest[0].node, through=rest[0].through | through)
    return Term("mul", tuple(rest), node=node, through=through)


def power(base: Term, exponent: Term, *, node: cst.BaseExpression | None = None) -> Term:
    """Powers of powers are merged where that holds for every base: when the outer exponent is whole."""
    if base.number is not None and exponent.number is not None and base.number > 0:
        return number(base.number**exponent.number, node=node)
    through: frozenset[str] = frozenset()
    if base.head == "pow" and exponent.number is not None and base.args[1].number is not None:
        inner = base.args[1].number
        if float(exponent.number).is_integer():
            through = base.through
            base, exponent = base.args[0], number(inner * exponent.number)
    if exponent.number == 1:
        return replace(base, node=node or base.node, through=base.through | through)
    return Term("pow", (base, replace(exponent, node=None)), node=node, through=through)


def expression_of(term: Term) -> cst.BaseExpression:
    """An expression for the term: the one it was read from, or a new one for what was regrouped."""
    if term.node is not None:
        return term.node
    if term.number is not None:
        text = repr(term.number)
        return cst.parse_expression(text)
    if term.head == "add":
        return _written_sum(term.args)
    if term.head == "mul":
        return _written_product(term.args)
    if term.head == "pow":
        return _written_power(*term.args)
    raise ValueError(f"a term of {term.head!r} has no expression of its own")


def coefficient_of(term: Term) -> float | int:
    if term.number is not None:
        return term.number
    if term.head == "mul" and term.args[0].number is not None:
        return term.args[0].number
    return 1


def negated(term: Term) -> Term:
    return product([number(-1), term], inlinable=frozenset())


def operation(left: cst.BaseExpression, operator: cst.BaseBinaryOp, right: cst.BaseExpression) -> cst.BinaryOperation:
    return cst.BinaryOperation(parenthesised(left), operator, parenthesised(right))


def _flattened(head: str, terms: Iterable[Term], *, inlinable: frozenset[str]) -> list[Term]:
    flat: list[Term] = []
    for term in terms:
        flat.extend(term.args if term.head == head and term.through <= inlinable else (term,))
    return flat


def _merged_temporaries(head: str, terms: Iterable[Term], *, inlinable: frozenset[str]) -> frozenset[str]:
    merged = (term.through for term in terms if term.head in (head, "number") and term.through <= inlinable)
    return frozenset().union(*merged)


def _multiply_in(factors: list[Term], factor: Term) -> None:
    """Append, or raise the exponent of an equal base; only positive whole exponents, which hold at zero too."""
    base, exponent = _base_and_exponent(factor)
    for place, present in enumerate(factors):
        other_base, other_exponent = _base_and_exponent(present)
        if base == other_base and exponent is not None and other_exponent is not None:
            factors[place] = Term("pow", (other_base, number(exponent + other_exponent)))
            return
    factors.append(factor)


def _base_and_exponent(factor: Term) -> tuple[Term, int | None]:
    if factor.head != "pow":
        return factor, 1
    exponent = factor.args[1].number
    whole = exponent is not None and exponent > 0 and float(exponent).is_integer()
    return factor.args[0], int(exponent) if whole and exponent is not None else None


def _written_sum(addends: Sequence[Term]) -> cst.BaseExpression:
    ordered = sorted(addends, key=lambda addend: coefficient_of(addend) < 0)
    written = expression_of(ordered[0])
    for addend in ordered[1:]:
        if coefficient_of(addend) < 0:
            written = operation(written, cst.Subtract(), expression_of(negated(addend)))
        else:
            written = operation(written, cst.Add(), expression_of(addend))
    return written


def _written_product(factors: Sequence[Term]) -> cst.BaseExpression:
    if factors[0].number == -1:
        return cst.UnaryOperation(cst.Minus(), parenthesised(_written_product(factors[1:])))
    ordered = sorted(factors, key=_is_divisor)
    written = cst.parse_expression("1.0") if _is_divisor(ordered[0]) else expression_of(ordered.pop(0))
    for factor in ordered:
        if _is_divisor(factor):
            written = operation(written, cst.Divide(), expression_of(factor.args[0]))
        else:
            written = operation(written, cst.Multiply(), expression_of(factor))
    return written


def _is_divisor(factor: Term) -> bool:
    return factor.head == "pow" and factor.args[1].number == -1


def _written_power(base: Term, exponent: Term) -> cst.BaseExpression:
    written = expression_of(base)
    if exponent.number == -1:
        return operation(cst.parse_expression("1.0"), cst.Divide(), written)
    if exponent.number == 2:
        return operation(written, cst.Multiply(), written.deep_clone())
    for function, value in (("sqrt", 0.5), ("rsqrt", -0.5)):
        if exponent.number == value and base.head != "size":
            return cst.Call(cst.parse_expression(f"torch.{function}"), [cst.Arg(written)])
    return operation(written, cst.Power(), expression_of(exponent))
