"""Reads expressions as terms. What an expression means is decided here, what is done about it nowhere near here."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import libcst as cst

from tasks.variants.rewrites.signatures import (
    MODULE_FUNCTIONS,
    OPERATORS,
    SIGNATURES,
    SYNONYMS,
    arguments_in_order,
    function_head,
)
from tasks.variants.rewrites.terms import Term, leaf, negated, number, power, product, spelt, total

_NAMESPACES = ("torch", "F", "nn", "math")
_EMPTY = cst.Module([])


class Reader:
    """Reads expressions of one function.

    Args:
        definitions: terms of temporaries; a name among them is read as what it holds.
        inlinable: those of them that sums and products may be merged with, because nothing else reads them.
        modules: terms of the constructors of attributes such as "self.linear".
        rank_of: number of dimensions of a term where it is known; dimensions are then counted from the back.
    """

    def __init__(
        self,
        *,
        definitions: Mapping[str, Term] | None = None,
        inlinable: frozenset[str] = frozenset(),
        modules: Mapping[str, Term] | None = None,
        rank_of: Callable[[Term], int | None] = lambda term: None,
    ) -> None:
        self.definitions = dict(definitions or {})
        self.inlinable = inlinable
        self.modules = modules or {}
        self.rank_of = rank_of
        self.terms: list[Term] = []
        """Everything read so far that stands in the text as an expression of its own."""

    def read(self, node: cst.BaseExpression) -> Term:
        term = self._read(node)
        if term.node is not node:
            term = spelt(term, node=node)
        self.terms.append(term)
        return term

    def _read(self, node: cst.BaseExpression) -> Term:
        match node:
            case cst.Name(value=name):
                held = self.definitions.get(name)
                return spelt(held, node=node, temporary=name) if held else leaf(name, node=node)
            case cst.Integer() | cst.Float():
                return number(node.evaluated_value, node=node)
            case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
                return product([number(-1), self.read(inner)], node=node, inlinable=self.inlinable)
            case cst.BinaryOperation():
                return self._operation(node)
            case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
                sides = (self.read(node.left), self.read(right))
                return Term(OPERATORS.get(type(operator), "comparison"), sides, node=node)
            case cst.Attribute():
                return self._attribute(node)
            case cst.Subscript():
                return self._subscript(node)
            case cst.Call():
                return self._call(node)
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                return Term("sequence", tuple(self.read(element.value) for element in elements), node=node)
        return leaf(code_of(node), node=node)

    def _operation(self, node: cst.BinaryOperation) -> Term:
        left, right = self.read(node.left), self.read(node.right)
        return self._arithmetic(_operator_name(node.operator), [left, right], node)

    def _arithmetic(self, head: str, args: Sequence[Term], node: cst.BaseExpression) -> Term:
        args = self._counted_from_the_back(head, args)
        match head, list(args):
            case (("contiguous" | "clone"), [value]):
                return value  # the same numbers
            case "transpose", [value, Term(number=-2), Term(number=-1)] | [value, Term(number=-1), Term(number=-2)]:
                return Term("mT", (value,), node=node)
            case "add", [left, right]:
                return total([left, right], node=node, inlinable=self.inlinable)
            case "sub", [left, right]:
                negative = product([number(-1), right], inlinable=self.inlinable)
                return total([left, negative], node=node, inlinable=self.inlinable)
            case "mul", [left, right]:
                return product([left, right], node=node, inlinable=self.inlinable)
            case "div", [left, right]:
                return product([left, power(right, number(-1))], node=node, inlinable=self.inlinable)
            case "neg", [only]:
                return product([number(-1), only], node=node, inlinable=self.inlinable)
            case "pow", [base, exponent]:
                return power(base, exponent, node=node)
            case "square", [base]:
                return power(base, number(2), node=node)
            case "sqrt", [base]:
                return power(base, number(0.5), node=node)
            case "rsqrt", [base]:
                return power(base, number(-0.5), node=node)
            case "reciprocal", [base]:
                return power(base, number(-1), node=node)
            case "var", [value, dim, *rest] if _is_uncorrected(rest):
                return self._variance(value, dim, rest, node)
            case (("floordiv" | "mod"), [Term(number=int(left)), Term(number=int(right))]):
                return number(left // right if head == "floordiv" else left % right, node=node)
        return Term(head, tuple(args), node=node)

    def _variance(self, value: Term, dim: Term, options: Sequence[Term], node: cst.BaseExpression) -> Term:
        """The mean squared distance from the mean, which is what an uncorrected variance is."""
        mean = Term("mean", (value, dim, leaf("True")))
        squares = power(total([value, negated(mean)], inlinable=frozenset()), number(2))
        return Term("mean", (squares, dim, *(option for option in options if option.head == "True")), node=node)

    def _counted_from_the_back(self, head: str, args: Sequence[Term]) -> list[Term]:
        """Arguments that are dimensions as negative numbers, where the rank is known."""
        places = [
            place for place, name in enumerate(SIGNATURES.get(head, ())) if name in ("dim", "dims", "dim0", "dim1")
        ]
        result = list(args)
        rank = self.rank_of(args[0]) if args and places else None
        if rank is None or head in ("unsqueeze", "stack", "cat"):
            return result
        for place in places:
            if place < len(args):
                result[place] = _from_the_back(args[place], rank)
        return result

    def _attribute(self, node: cst.Attribute) -> Term:
        dotted = dotted_name(node)
        if dotted and dotted.startswith("math.") and isinstance(getattr(math, dotted[5:], None), float):
            return number(getattr(math, dotted[5:]), node=node)
        if node.attr.value in ("T", "mT"):
            return Term("mT", (self.read(node.value),), node=node)
        if node.attr.value == "values" and isinstance(node.value, cst.Call):
            return self._extreme(self.read(node.value), node)
        if dotted and dotted.split(".")[0] in (*_NAMESPACES, "self"):
            return leaf(dotted, node=node)
        return Term(f".{node.attr.value}", (self.read(node.value),), node=node)

    def _subscript(self, node: cst.Subscript) -> Term:
        value = self.read(node.value)
        parts = tuple(self._index(element.slice) for element in node.slice)
        if value.head in ("max", "min") and parts == (number(0),):
            return self._extreme(value, node)
        if value.head == ".shape" and len(parts) == 1:
            return Term("size", (value.args[0], parts[0]), node=node)
        return Term("index", (value, *parts), node=node)

    def _index(self, part: cst.BaseSlice) -> Term:
        if isinstance(part, cst.Index):
            return self.read(part.value)
        assert isinstance(part, cst.Slice)
        bounds = (part.lower, part.upper, part.step)
        return Term("slice", tuple(self.read(bound) if bound else leaf("") for bound in bounds))

    def _extreme(self, value: Term, node: cst.BaseExpression) -> Term:
        """The values of `max` or `min` along a dimension are amax or amin."""
        if value.head in ("max", "min") and len(value.args) > 1:
            return Term(f"a{value.head}", value.args, node=node)
        return Term("values", (value,), node=node)

    def _call(self, node: cst.Call) -> Term:
        head, args = self._callee(node.func)
        if any(argument.star for argument in node.args):
            return Term(f"{head}*", (*args, leaf(code_of(node))), node=node)
        named = {argument.keyword.value: self.read(argument.value) for argument in node.args if argument.keyword}
        args = [*args, *(self.read(argument.value) for argument in node.args if not argument.keyword)]
        if head in self.modules:
            return self._module_call(head, args, node)
        if head.startswith("math.") and all(arg.number is not None for arg in args) and args:
            return number(getattr(math, head[5:])(*(arg.number for arg in args)), node=node)
        return self._arithmetic(head, arguments_in_order(head, args, named), node)

    def _callee(self, function: cst.BaseExpression) -> tuple[str, list[Term]]:
        """Head of a call, and the object of a method call as its first argument."""
        dotted = dotted_name(function)
        if dotted and (dotted.split(".")[0] in (*_NAMESPACES, "self") or "." not in dotted):
            is_method_of_attribute = dotted.startswith("self.") and dotted.count(".") > 1 and dotted not in self.modules
            if not is_method_of_attribute:
                return function_head(dotted), []
        if isinstance(function, cst.Attribute):
            name = function.attr.value
            return SYNONYMS.get(name, name), [self.read(function.value)]
        return code_of(function), []

    def _module_call(self, attribute: str, args: Sequence[Term], node: cst.Call) -> Term:
        made = self.modules[attribute]
        if made.head == "nn.Linear":
            has_bias = all(arg.head not in ("False", "=bias") for arg in made.args)
            names = ("weight", "bias") if has_bias else ("weight",)
            return Term("linear", (*args, *(leaf(f"{attribute}.{name}") for name in names)), node=node)
        if made.head == "nn.Conv2d" and len(made.args) >= 3 and made.args[2].number is not None:
            parts = (leaf(attribute), leaf(f"{attribute}.weight"), leaf(f"{attribute}.bias"))
            return Term("nn.Conv2d", (*args, *parts, *made.args[3:]), node=node)
        function = MODULE_FUNCTIONS.get(made.head)
        if function is None or any(arg.head.startswith("=") for arg in made.args[1:]):
            return Term(attribute, tuple(args), node=node)
        options = tuple(arg.args[0] if arg.head.startswith("=") else arg for arg in made.args)
        return Term(function, (*args, *options), node=node)


def _is_uncorrected(options: Sequence[Term]) -> bool:
    corrections = [option.args[0].number for option in options if option.head == "=correction"]
    return corrections == [0] or (not corrections and bool(options) and options[0].head == "False")


def _from_the_back(dimension: Term, rank: int) -> Term:
    if dimension.head == "sequence":
        return replace(dimension, args=tuple(_from_the_back(part, rank) for part in dimension.args))
    if isinstance(dimension.number, int) and dimension.number >= 0:
        return number(dimension.number - rank, node=dimension.node)
    return dimension


def dotted_name(node: cst.CSTNode) -> str | None:
    """ "a.b.c" for names and attributes of names."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = dotted_name(node.value)
        return f"{base}.{node.attr.value}" if base else None
    return None


def code_of(node: cst.CSTNode) -> str:
    return _EMPTY.code_for_node(node)


def _operator_name(operator: cst.BaseBinaryOp) -> str:
    plain = {cst.Add: "add", cst.Subtract: "sub", cst.Multiply: "mul", cst.Divide: "div", cst.Power: "pow"}
    return plain.get(type(operator)) or OPERATORS.get(type(operator)) or type(operator).__name__
