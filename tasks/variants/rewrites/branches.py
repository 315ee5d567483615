"""A method without the branches that the settings of its object decide, such as `if self.data_format == "NCHW":`."""

from collections.abc import Mapping, Sequence

import libcst as cst

from tasks.variants.rewrites.forward import returned, statements_of
from tasks.variants.rewrites.reading import code_of


def settled(method: cst.FunctionDef, known: Mapping[str, object]) -> cst.FunctionDef:
    """The method for an object whose attributes, such as "self.data_format", have known values; None is unknown."""
    if not isinstance(method.body, cst.IndentedBlock):
        return method
    statements = _executed(statements_of(method), known)
    return method.with_changes(body=method.body.with_changes(body=statements)) if statements else method


def _executed(statements: Sequence[cst.BaseStatement], known: Mapping[str, object]) -> list[cst.BaseStatement]:
    found: list[cst.BaseStatement] = []
    for statement in statements:
        found += _chosen(statement, known)
        if found and returned(found[-1]) is not None:
            break
    return found


def _chosen(statement: cst.BaseStatement, known: Mapping[str, object]) -> list[cst.BaseStatement]:
    """A statement, or in the place of a branch what is executed of it."""
    holds = _told(statement.test, known) if isinstance(statement, cst.If) else None
    if not isinstance(statement, cst.If) or holds is None:
        return [statement]
    match statement.body if holds else statement.orelse:
        case cst.IndentedBlock(body=inner) | cst.Else(body=cst.IndentedBlock(body=inner)):
            return _executed([each for each in inner if isinstance(each, cst.BaseStatement)], known)
        case cst.If() as other:
            return _chosen(other, known)
        case None:
            return []
    return [statement]


def _told(test: cst.BaseExpression, known: Mapping[str, object]) -> bool | None:
    """Whether a condition holds; None where that is not told."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            holds = _told(inner, known)
            return None if holds is None else not holds
        case cst.Comparison(
            left=left,
            comparisons=[cst.ComparisonTarget(operator=cst.Equal() | cst.NotEqual() as operator, comparator=right)],
        ):
            one, other = known.get(code_of(left)), _literal(right)
            if isinstance(one, str | int) and isinstance(other, str | int):
                return (one == other) is isinstance(operator, cst.Equal)
        case cst.Attribute():
            value = known.get(code_of(test))
            return value if isinstance(value, bool) else None
    return None


def _literal(node: cst.BaseExpression) -> object:
    return node.evaluated_value if isinstance(node, cst.SimpleString | cst.Integer) else None
