"""What a function and those within it do with names, as Python itself tells it from the text."""

import symtable
from collections.abc import Iterator

import libcst as cst

from tasks.variants.names import walk

LOOKING_AT_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec"})
"""Functions for which it matters what names are in the function that calls them."""
_EMPTY = cst.Module([])


def scopes_of(function: cst.FunctionDef) -> Iterator[symtable.SymbolTable]:
    """What a function says of names, and what those in it do."""
    code = _EMPTY.code_for_node(function.with_changes(decorators=[]))
    waiting = symtable.symtable(code, "", "exec").get_children()
    while waiting:
        yield (table := waiting.pop())
        waiting += table.get_children()


def own_name(method: cst.FunctionDef) -> str | None:
    """What a method calls its object: `self`, as a rule."""
    parameters = [*method.params.posonly_params, *method.params.params]
    return parameters[0].name.value if parameters else None


def gives(symbol: symtable.Symbol) -> bool:
    """Whether the name gets a value, be it as a parameter."""
    return symbol.is_assigned() or symbol.is_parameter() or symbol.is_imported()


def given_in(function: cst.FunctionDef) -> set[str]:
    """Names that anything in a function gives a value."""
    return {each.get_name() for table in scopes_of(function) for each in table.get_symbols() if gives(each)}


def stored_in(function: cst.FunctionDef) -> set[str]:
    """Names that anything in a function gives a value otherwise than as a parameter."""
    return {each.get_name() for table in scopes_of(function) for each in table.get_symbols() if each.is_assigned()}


def read_from_outside(function: cst.FunctionDef) -> set[str]:
    """Names that anything in a function has from its file or from Python."""
    return {each.get_name() for table in scopes_of(function) for each in table.get_symbols() if each.is_global()}


def shows_names(function: cst.FunctionDef) -> bool:
    """Whether a text in it says what its names are, as `f"{size=}"` does."""
    return any(isinstance(each, cst.FormattedStringExpression) and each.equal is not None for each in walk(function))
