"""What names mean in a user's file and in the code beside it: private ones, imports, and those that must be renamed."""

import ast
import re
import symtable
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tasks.variants.names import KeepingKeywords, Renamer

_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """What a text says of names: those that it binds for the whole file, and those that it takes from there."""

    bound: Mapping[str, frozenset[str | None]]
    """What each is bound to: what it is imported from, as a dotted name; None for anything else."""
    used: frozenset[str]
    times: Counter[str]
    """By how many statements of the file each is given a value, imports included.

    Not counted are an import above a class of the same name, which that replaces, and what gives no value when the file
    runs: annotations alone, and what is for type checkers only. A star import gives what nobody knows here.
    """

    @classmethod
    def by(cls, source: str) -> "Said":
        bound: dict[str, set[str | None]] = {}
        times = Counter[str]()
        statements = ast.parse(source).body
        lines = lines_of(source)
        last_class = {each.name: place for place, each in enumerate(statements) if isinstance(each, ast.ClassDef)}
        for place, statement in enumerate(statements):
            table = symtable.symtable(text_of(statement, lines), "file", "exec")
            names = {*_bound_by(table)}
            if isinstance(statement, ast.Import | ast.ImportFrom):
                for name, origin, _ in imports_of(statement):
                    bound.setdefault(name, set()).add(origin)
            else:
                for name in names:
                    bound.setdefault(name, set()).add(None)
            if gives_values(statement):
                imported = names.difference(_bound_by(table, but_imports=True))
                times.update(names - {name for name in imported if place < last_class.get(name, 0)})
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


def lines_of(source: str) -> list[str]:
    """Lines as Python counts them."""
    return _LINE_END.split(source)


def text_of(statement: ast.stmt, lines: Sequence[str]) -> str:
    """The statement as the file has it, but for decorators; however deep its expressions are.

    Args:
        lines: of the file.
    """
    assert statement.end_lineno is not None
    text = [line.encode() for line in lines[statement.lineno - 1 : statement.end_lineno]]
    text[-1] = text[-1][: statement.end_col_offset]
    text[0] = text[0][statement.col_offset :]
    return b"\n".join(text).decode()


def gives_values(statement: ast.stmt) -> bool:
    """Whether it can give names a value when the file runs: no annotation alone, and not for type checkers only."""
    match statement:
        case ast.AnnAssign(value=None):
            return False
        case ast.If(test=ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), orelse=[]):
            return False
    return True


def _bound_by(table: symtable.SymbolTable, *, is_file: bool = True, but_imports: bool = False) -> Iterator[str]:
    """Names that are bound for the file; those but imported by its own statements left out, if so wished."""
    for symbol in table.get_symbols():
        is_imported = symbol.is_imported() and not (is_file and but_imports)
        if (symbol.is_assigned() or is_imported) and (is_file or symbol.is_declared_global()):
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
