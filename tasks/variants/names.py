"""Names in a program: which ones a piece of it uses, which ones it defines, and what a class needs to stand alone."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any, TypeVar

import libcst as cst

from tasks.variants.text import text_of_statement

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
Node = TypeVar("Node", bound=cst.CSTNode)

_LAYOUT = (
    "whitespace",
    "leading_lines",
    "lines_after",
    "trailing",
    "header",
    "footer",
    "lpar",
    "rpar",
    "comma",
    "semicolon",
)
_NOT_VARIABLES = {(cst.Attribute, "attr"), (cst.Arg, "keyword")}


def words(text: str) -> frozenset[str]:
    """Names from a text that separates them by spaces, for long sets of them."""
    return frozenset(text.split())


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node and everything in it but white space, in the order of the text.

    libcst's own visitors build every node anew, which costs more than everything else that is done here.
    """
    yield node
    for part in parts_of(node):
        yield from walk(part)


def parts_of(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes directly in a node but white space."""
    for name in _parts(type(node)):
        value = getattr(node, name)
        for each in value if isinstance(value, list | tuple) else (value,):
            if isinstance(each, cst.CSTNode):
                yield each


@lru_cache(maxsize=8192)
def used_names(node: cst.CSTNode) -> tuple[str, ...]:
    """Every variable read or written in a node, in order and as often as it occurs; no attributes, no keywords."""
    if isinstance(node, cst.Name):
        return (node.value,)
    names: list[str] = []
    for name in _parts(type(node)):
        if (type(node), name) in _NOT_VARIABLES:
            continue
        value = getattr(node, name)
        for each in value if isinstance(value, list | tuple) else (value,):
            if isinstance(each, cst.CSTNode):
                names.extend(used_names(each))
    return tuple(names)


@lru_cache(maxsize=2048)
def defined_names(statement: cst.CSTNode) -> frozenset[str]:
    """Names that a statement binds or changes, those of loops in it included; none for a bare expression."""
    if isinstance(statement, cst.ClassDef | cst.FunctionDef):
        return frozenset({statement.name.value})
    names: set[str] = set()
    for node in walk(statement):
        match node:
            case cst.AssignTarget(target=target) | cst.AugAssign(target=target) | cst.AnnAssign(target=target):
                names |= _bound(target)
            case cst.For(target=target):
                names |= _bound(target)
            case cst.ImportAlias(name=name, asname=asname):
                names |= _bound(asname.name if asname else name)
            case cst.FunctionDef(name=name) | cst.ClassDef(name=name):
                names |= _bound(name)
    return frozenset(names)


def names_bound_in(statements: Iterable[cst.CSTNode]) -> set[str]:
    """Names that any of several statements binds or changes."""
    return {name for statement in statements for name in defined_names(statement)}


def names_besides(program: cst.Module, imports: str) -> set[str]:
    """Names that the statements of a program bind, apart from imports that it shares with a text of some."""
    shared = set(imports.splitlines())
    others = (each for each in program.body if text_of_statement(each).strip() not in shared)
    return names_bound_in(others)


def reachable(module: cst.Module, *, roots: Iterable[str]) -> set[Statement]:
    """The top-level statements that the roots need, themselves included."""
    wanted, waiting = set(roots), True
    statements: set[Statement] = set()
    while waiting:
        waiting = False
        for statement in module.body:
            if statement not in statements and defined_names(statement) & wanted:
                statements.add(statement)
                wanted.update(used_names(statement))
                waiting = True
    return statements


def renamed(module: cst.Module, new_names: Mapping[str, str]) -> cst.Module:
    """The module with variables renamed wherever they occur."""
    return module.with_changes(body=[substituted(statement, new_names) for statement in module.body])


def substituted(node: Node, new_names: Mapping[str, str]) -> Node:
    """The node with variables renamed wherever they occur in it."""
    if all(new_names.get(name, name) == name for name in used_names(node)):
        return node
    changed = node.visit(Renamer(new_names))
    assert isinstance(changed, type(node))
    return changed


def exchanged(node: Node, new: Mapping[cst.CSTNode, cst.CSTNode]) -> Node:
    """The node with others in the place of some in it, of which none is within another."""
    if not new:
        return node
    changed = node.visit(_Exchanging(new))
    assert isinstance(changed, type(node))
    return changed


class _Exchanging(cst.CSTTransformer):
    def __init__(self, new: Mapping[cst.CSTNode, cst.CSTNode]) -> None:
        self.new = new

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        return self.new.get(original_node, updated_node)


class KeepingKeywords(cst.CSTTransformer):
    """Changes names, but not where a value is given or matched by one: in a call, or in a pattern of a class."""

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_MatchKeywordElement(
        self, original_node: cst.MatchKeywordElement, updated_node: cst.MatchKeywordElement
    ) -> cst.MatchKeywordElement:
        return updated_node.with_changes(key=original_node.key)


class Renamer(KeepingKeywords):
    """Renames variables wherever they occur, but no attributes and no keywords."""

    def __init__(self, new_names: Mapping[str, str]) -> None:
        self.new_names = new_names

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return updated_node.with_changes(value=self.new_names.get(updated_node.value, updated_node.value))

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)


@cache
def _parts(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    """Fields of a kind of node that hold other nodes, without white space and parentheses."""
    return tuple(each.name for each in fields(kind) if not each.name.startswith(_LAYOUT))


def _bound(target: cst.CSTNode) -> set[str]:
    if isinstance(target, cst.Name):
        return {target.value}
    if isinstance(target, cst.Attribute | cst.Subscript):
        return _bound(target.value)
    if isinstance(target, cst.Tuple | cst.List):
        return set().union(*(_bound(element.value) for element in target.elements))
    return set()
