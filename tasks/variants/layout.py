"""How a program's text is laid out: imports, blank lines, parentheses. Equal programs get equal texts."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import libcst as cst

from tasks.variants.names import Statement, defined_names, used_names

# What a rewrite may use without importing it.
KNOWN_IMPORTS = {
    "math": "import math",
    "torch": "import torch",
    "nn": "import torch.nn as nn",
    "F": "import torch.nn.functional as F",
}
# How tightly an operator binds; what is not here (a name, a call, a number) never needs parentheses.
_PRECEDENCE: dict[type[cst.CSTNode], int] = {
    cst.NamedExpr: 0,
    cst.Lambda: 0,
    cst.IfExp: 1,
    cst.BooleanOperation: 2,
    cst.Comparison: 4,
    cst.BitOr: 5,
    cst.BitXor: 6,
    cst.BitAnd: 7,
    cst.LeftShift: 8,
    cst.RightShift: 8,
    cst.Add: 9,
    cst.Subtract: 9,
    cst.Multiply: 10,
    cst.MatrixMultiply: 10,
    cst.Divide: 10,
    cst.FloorDivide: 10,
    cst.Modulo: 10,
    cst.UnaryOperation: 11,
    cst.Power: 12,
}
_ATOM = 13
_WORDS = (cst.And, cst.Or, cst.Not, cst.In, cst.NotIn, cst.Is, cst.IsNot)


def laid_out(module: cst.Module) -> cst.Module:
    """The module with the imports it needs first, no comments or docstrings, and regular blank lines."""
    clean = [_cleaned(statement) for statement in module.body]
    imports = [statement for statement in clean if _is_import(statement)]
    others = [statement for statement in clean if not _is_import(statement)]
    used = {name for statement in others for name in used_names(statement)}
    body = _import_block(imports, used=used)
    for statement in others:
        body.append(_spaced_by(_blank_lines(body[-1], statement) if body else 0, statement))
    return module.with_changes(header=(), body=body, footer=())


def parenthesised(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression, safe to put anywhere; `laid_out` drops the parentheses where they are not needed."""
    if _binding(node) == _ATOM or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


@lru_cache(maxsize=1024)  # of most programs all but a statement or two are those of another
def _cleaned(statement: Statement) -> Statement:
    clean = statement.visit(_Cleaner())
    assert isinstance(clean, type(statement))
    return clean


def _is_import(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Import | cst.ImportFrom)


def _import_block(present: Sequence[Statement], *, used: set[str]) -> list[Statement]:
    """Used imports, the standard library's before torch's, with what KNOWN_IMPORTS can add."""
    lines = {cst.Module([_spaced_by(0, line)]).code.strip() for line in present if defined_names(line) & used}
    imported = {name for line in present for name in defined_names(line)}
    lines.update(line for name, line in KNOWN_IMPORTS.items() if name in used - imported)
    standard = sorted(line for line in lines if "torch" not in line)
    torch = sorted(line for line in lines if "torch" in line)
    blocks: list[Statement] = [cst.parse_statement(line) for line in (*standard, *torch)]
    if standard and torch:
        blocks[len(standard)] = _spaced_by(1, blocks[len(standard)])
    return blocks


def _blank_lines(above: cst.CSTNode, below: cst.CSTNode) -> int:
    if any(isinstance(statement, cst.ClassDef | cst.FunctionDef) for statement in (above, below)):
        return 2
    return 1 if _is_import(above) else 0


def _spaced_by(lines: int, statement: Statement) -> Statement:
    return statement.with_changes(leading_lines=[cst.EmptyLine(indent=False) for _ in range(lines)])


def _binding(node: cst.CSTNode) -> int:
    if isinstance(node, cst.BinaryOperation):
        return _PRECEDENCE[type(node.operator)]
    if isinstance(node, cst.BooleanOperation):
        return 3 if isinstance(node.operator, cst.And) else 2
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        return 3
    if isinstance(node, cst.Tuple | cst.GeneratorExp | cst.Yield | cst.Await):
        return -1  # their parentheses are left alone
    return _PRECEDENCE.get(type(node), _ATOM)


def _bare(node: cst.BaseExpression, *, at_least: int) -> cst.BaseExpression:
    """Without its parentheses, where an operator that binds with strength `at_least` does not need them."""
    if not node.lpar or _binding(node) < max(at_least, 0) or _spans_lines(node):
        return node
    return node.with_changes(lpar=[], rpar=[])


def _bare_element(element: cst.BaseElement) -> cst.BaseElement:
    """An element of a list or tuple; behind a star there may be no choice and no comparison."""
    at_least = _PRECEDENCE[cst.BitOr] if isinstance(element, cst.StarredElement) else 1
    return element.with_changes(value=_bare(element.value, at_least=at_least))


def _spans_lines(node: cst.CSTNode) -> bool:
    return "\n" in cst.Module([]).code_for_node(node)


class _Cleaner(cst.CSTTransformer):
    """Drops comments, docstrings, doubled blank lines and redundant parentheses."""

    def leave_EmptyLine(
        self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine
    ) -> cst.EmptyLine | cst.RemovalSentinel:
        return cst.RemoveFromParent()

    def leave_TrailingWhitespace(
        self, original_node: cst.TrailingWhitespace, updated_node: cst.TrailingWhitespace
    ) -> cst.TrailingWhitespace:
        return cst.TrailingWhitespace()

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        body = list(updated_node.body)
        if len(body) > 1 and _is_docstring(body[0]):
            body = body[1:]
        return updated_node.with_changes(body=body)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        return updated_node.with_changes(leading_lines=(), lines_after_decorators=())

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        body = list(updated_node.body.body)
        body[1:] = [_spaced_by(1, part) if isinstance(part, cst.FunctionDef) else part for part in body[1:]]
        return updated_node.with_changes(body=updated_node.body.with_changes(body=body))

    def on_leave(self, original_node: cst.CSTNode, updated_node: Any) -> Any:
        left = super().on_leave(original_node, updated_node)
        if not isinstance(left, _WORDS):
            return left
        # Parentheses that go may have been all that stood between a word and what it is about.
        sides = {side for side in ("whitespace_before", "whitespace_after") if hasattr(left, side)}
        return left.with_changes(**dict.fromkeys(sides, cst.SimpleWhitespace(" ")))

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BinaryOperation:
        own = _binding(updated_node)
        if isinstance(updated_node.operator, cst.Power):  # groups from the right, and a sign may follow it
            left, right = own + 1, _PRECEDENCE[cst.UnaryOperation]
        else:
            left, right = own, own + 1
        return updated_node.with_changes(
            left=_bare(updated_node.left, at_least=left), right=_bare(updated_node.right, at_least=right)
        )

    def leave_UnaryOperation(
        self, original_node: cst.UnaryOperation, updated_node: cst.UnaryOperation
    ) -> cst.UnaryOperation:
        # "and" must not be taken for part of what follows a "not".
        own = _PRECEDENCE[cst.Comparison] if isinstance(updated_node.operator, cst.Not) else _binding(updated_node)
        return updated_node.with_changes(expression=_bare(updated_node.expression, at_least=own))

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.Comparison:
        return updated_node.with_changes(left=_bare(updated_node.left, at_least=5))

    def leave_ComparisonTarget(
        self, original_node: cst.ComparisonTarget, updated_node: cst.ComparisonTarget
    ) -> cst.ComparisonTarget:
        return updated_node.with_changes(comparator=_bare(updated_node.comparator, at_least=5))

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        if isinstance(updated_node.value, cst.Integer):  # the point would be its own
            return updated_node
        return updated_node.with_changes(value=_bare(updated_node.value, at_least=_ATOM))

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(value=_bare(updated_node.value, at_least=1))

    def leave_Tuple(self, original_node: cst.Tuple, updated_node: cst.Tuple) -> cst.Tuple:
        return updated_node.with_changes(elements=[_bare_element(each) for each in updated_node.elements])

    def leave_List(self, original_node: cst.List, updated_node: cst.List) -> cst.List:
        return updated_node.with_changes(elements=[_bare_element(each) for each in updated_node.elements])

    def leave_Index(self, original_node: cst.Index, updated_node: cst.Index) -> cst.Index:
        return updated_node.with_changes(value=_bare(updated_node.value, at_least=1))

    def leave_Slice(self, original_node: cst.Slice, updated_node: cst.Slice) -> cst.Slice:
        bounds = {name: getattr(updated_node, name) for name in ("lower", "upper", "step")}
        return updated_node.with_changes(**{name: _bare(value, at_least=1) for name, value in bounds.items() if value})

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> cst.Expr:
        return updated_node.with_changes(value=_bare(updated_node.value, at_least=1))

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        return updated_node.with_changes(value=_bare(updated_node.value, at_least=1))

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.Return:
        if updated_node.value is None:
            return updated_node
        space = cst.SimpleWhitespace(" ")
        return updated_node.with_changes(value=_bare(updated_node.value, at_least=1), whitespace_after_return=space)


def _is_docstring(statement: cst.CSTNode) -> bool:
    return (
        isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], cst.Expr)
        and isinstance(statement.body[0].value, cst.SimpleString | cst.ConcatenatedString)
    )
