"""Names in a program: which ones a piece of it uses, which ones it defines, and what a class needs to stand alone."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import libcst as cst

Node = TypeVar("Node", bound=cst.CSTNode)


def used_names(node: cst.CSTNode) -> list[str]:
    """Every variable read or written in a node, in order and as often as it occurs; no attributes, no keywords."""
    collector = _NameCollector()
    node.visit(collector)
    return collector.names


def defined_names(statement: cst.CSTNode) -> set[str]:
    """Names that a top-level statement binds or changes; empty for a bare expression."""
    if isinstance(statement, cst.ClassDef | cst.FunctionDef):
        return {statement.name.value}
    collector = _DefinitionCollector()
    statement.visit(collector)
    return collector.names


def reachable(module: cst.Module, *, roots: Iterable[str]) -> set[cst.CSTNode]:
    """The top-level statements that the roots need, themselves included."""
    wanted, waiting, statements = set(roots), True, set()
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
    return substituted(module, new_names)


def substituted(node: Node, new_names: Mapping[str, str]) -> Node:
    """The node with variables renamed wherever they occur in it."""
    if not new_names:
        return node
    changed = node.visit(_Renamer(new_names))
    assert isinstance(changed, type(node))
    return changed


class _NameCollector(cst.CSTVisitor):
    def __init__(self) -> None:
        self.names: list[str] = []

    def visit_Name(self, node: cst.Name) -> None:
        self.names.append(node.value)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False


class _DefinitionCollector(cst.CSTVisitor):
    """Collects what assignments, imports, functions and classes bind; for `a.b = c` that is a."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self.names.update(_bound(node.target))

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self.names.update(_bound(node.target))

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self.names.update(_bound(node.target))

    def visit_ImportAlias(self, node: cst.ImportAlias) -> None:
        alias = node.asname.name if node.asname else node.name
        self.names.update(_bound(alias))

    def visit_For(self, node: cst.For) -> None:
        self.names.update(_bound(node.target))

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self.names.add(node.name.value)
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        self.names.add(node.name.value)
        return False


def _bound(target: cst.CSTNode) -> set[str]:
    if isinstance(target, cst.Name):
        return {target.value}
    if isinstance(target, cst.Attribute | cst.Subscript):
        return _bound(target.value)
    if isinstance(target, cst.Tuple | cst.List):
        return set().union(*(_bound(element.value) for element in target.elements))
    return set()


class _Renamer(cst.CSTTransformer):
    def __init__(self, new_names: Mapping[str, str]) -> None:
        self.new_names = new_names

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return updated_node.with_changes(value=self.new_names.get(updated_node.value, updated_node.value))

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)
