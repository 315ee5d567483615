"""What names mean in a user's file and in the code beside it: private ones, imports, and those that must be renamed."""

import ast
import symtable
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from tasks.variants.names import KeepingKeywords, Renamer


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """What a text says of names: those that it binds for the whole file, and those that it takes from there."""

    bound: Mapping[str, frozenset[str | None]]
    """What each is bound to: what it is imported from, as a dotted name; None for anything else."""
    used: frozenset[str]
    times: Counter[str]
    """By how many statements of the file each is bound."""

    @classmethod
    def by(cls, source: str) -> "Said":
        bound: dict[str, set[str | None]] = {}
        times = Counter[str]()
        for statement in ast.parse(source).body:
            imports = statement if isinstance(statement, ast.Import | ast.ImportFrom) else None
            table = symtable.symtable(ast.unparse(statement) if imports is None else "", "file", "exec")
            names = {*_bound_by(table)}
            times.update(names)
            for name in names:
                bound.setdefault(name, set()).add(None)
            for name, origin, _ in imports_of(imports) if imports else ():
                bound.setdefault(name, set()).add(origin)
        used = _used_by(symtable.symtable(source, "file", "exec"))
        return cls(
            bound={name: frozenset(origins) for name, origins in bound.items()}, used=frozenset(used), times=times
        )

    def imports(self, name: str, origin: str) -> bool:
        """Whether the name is that of an import for sure, and of nothing else."""
        return self.bound.get(name) == {origin}


def imports_of(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, ast.Import | ast.ImportFrom]]:
    """Each name that is imported, what it stands for, and an import of nothing else."""
    for alias in statement.names:
        name = alias.asname or alias.name.partition(".")[0]
        if isinstance(statement, ast.ImportFrom):
            origin = f"{'.' * statement.level}{statement.module or ''}.{alias.name}"
            yield name, origin, ast.ImportFrom(statement.module, [alias], statement.level)
        else:
            yield name, alias.name if alias.asname else name, ast.Import([alias])


def _bound_by(table: symtable.SymbolTable, *, is_file: bool = True) -> Iterator[str]:
    for symbol in table.get_symbols():
        if (symbol.is_assigned() or symbol.is_imported()) and (is_file or symbol.is_declared_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _bound_by(child, is_file=False)


def _used_by(table: symtable.SymbolTable) -> Iterator[str]:
    yield from (symbol.get_name() for symbol in table.get_symbols() if symbol.is_global())
    for child in table.get_children():
        yield from _used_by(child)


def spelt_out(statement: cst.ClassDef, owner: str) -> cst.ClassDef:
    """The class with its private names as Python makes them in a class of that name, so that it may have another.

    So attributes are called the same in all forms of the user's class, and weights in their state dicts.
    """
    return statement.with_changes(body=statement.body.visit(_PrivateNames(owner)))


def all_spelt_out(module: cst.Module) -> cst.Module:
    """The module with all private names as Python makes them, so that its classes may have other names."""
    return module.visit(_PrivateNames(""))


class _PrivateNames(KeepingKeywords):
    def __init__(self, owner: str) -> None:
        self.owners = [owner.lstrip("_")]

    def visit_ClassDef_body(self, node: cst.ClassDef) -> None:
        self.owners.append(node.name.value.lstrip("_"))

    def leave_ClassDef_body(self, node: cst.ClassDef) -> None:
        self.owners.pop()

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        name, owner = updated_node.value, self.owners[-1]
        if not owner or not name.startswith("__") or name.endswith("__"):
            return updated_node
        return updated_node.with_changes(value=f"_{owner}{name}")


class Renaming(Renamer):
    """Renames variables, but not what an import names: that stays, under another name."""

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        return updated_node.with_changes(module=original_node.module)

    def leave_ImportAlias(self, original_node: cst.ImportAlias, updated_node: cst.ImportAlias) -> cst.ImportAlias:
        asname, name = updated_node.asname, original_node.name
        if asname is None and isinstance(name, cst.Name) and name.value in self.new_names:
            asname = cst.AsName(cst.Name(self.new_names[name.value]))
        return updated_node.with_changes(name=name, asname=asname)
