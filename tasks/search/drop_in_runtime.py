"""The class that a drop-in file adds, with its helpers and imports, under names that the file does not have."""

import builtins
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from keyword import iskeyword
from math import isinf
from pathlib import Path
from typing import Any

import libcst as cst

from tasks.search.names import Said
from tasks.search.survey import Survey
from tasks.variants.names import defined_names, reachable, renamed, used_names

_SOURCE = Path(__file__).with_name("drop_in_class.py")
_CONSTANTS = ("FORMS", "NAMED_FORMS", "APART", "TRAINING", "DEVICE", "JUDGED", "CLASSES", "AGAIN")
_BUILTINS = frozenset(name for name in vars(builtins) if not name.startswith("_") and not iskeyword(name)) - {"super"}
_CLASS = "DropIn"
_SETTLE = "_settle"
_MADE, _MADE_ALIKE = "_made", "_made_alike"
_CONSTRUCTOR = "__init__"


@dataclass(frozen=True, kw_only=True, slots=True)
class Runtime:
    """The class that chooses, and what it needs to know."""

    imports: Mapping[str, str]
    """Lines that import what the class needs, by how that is called in the class."""
    names: Mapping[str, str]
    """Under which the file has what the class, its helpers, constants and imports are called there."""
    decorators: str
    """Of the user's class, which may change it."""

    @classmethod
    def for_file(
        cls,
        said: Said,
        bound: Set[str],
        taken: set[str],
        *,
        known: Mapping[str, str],
        more: tuple[str, ...],
        decorators: str,
    ) -> "Runtime":
        """As it fits into a file.

        Args:
            said: what the file says.
            bound: names of the file and of the candidate's statements in it.
            taken: names that something has; those that are given here are among them afterwards.
            known: what is there already, or is to have a certain name.
            more: names for statements that will use what is there.
        """
        helpers = [each.name.value for each in _body() if each.name.value not in known]
        names = {own: free_name(f"_{own.lstrip('_')}", taken) for own in (*_CONSTANTS, *helpers, *more)}
        wanted = {name: f"import {name}" for each in _source().body for name in _imported(each)}
        shadowed = _used(_body()) & _BUILTINS
        if "*" not in bound:  # which may be any name
            wanted = {name: line for name, line in wanted.items() if not said.imports(name, name)}
            shadowed &= bound
        wanted |= {name: f"from builtins import {name}" for name in sorted(shadowed)}
        own = {name: free_name(f"_{name}", taken) for name in wanted}
        imports = {name: f"{line} as {own[name]}\n" for name, line in wanted.items()}
        return cls(imports=imports, names={**names, **own, **known}, decorators=decorators)

    def text(
        self,
        facts: Survey,
        *,
        apart: str,
        training: bool | None,
        device: str,
        judged: str,
        is_made_alike: bool,
        again: str = "",
        more: str = "",
    ) -> str:
        """As it is to be in a file.

        Args:
            apart: which tensors of the judged inputs are one, as an expression.
            training: mode that it was judged in; None if the other is as good.
            judged: digest of the module that was judged.
            is_made_alike: whether the fast class needs no constructor of its own.
            again: its method for calls that are known, if it has one.
            more: further statements that use what is there.
        """
        forms = _literal(list(facts.inputs)), _literal(dict(facts.named_inputs))
        known = f"getattr({self.names['Fast']}, {again!r}, None)" if again else "None"
        values = (*forms, apart, repr(training), repr(device), repr(judged), "{}", known)
        constants = "".join(f"{own} = {value}\n" for own, value in zip(_CONSTANTS, values, strict=True))
        names = {**self.names, _MADE_ALIKE: self.names[_MADE]}
        body, used = _renamed_body(is_made_alike, frozenset(names.items()))
        before, after = (cst.parse_module(text) for text in (constants, f"{_SETTLE}()\n{more}"))
        used |= _used([before, after])
        imports = "".join(line for name, line in self.imports.items() if name in used)
        name = self.names[_CLASS]
        body = body.replace(f"class {name}(", f"{self.decorators}class {name}(", 1)
        return f"{imports}\n{renamed(before, names).code}\n\n{body}\n\n\n{renamed(after, names).code.strip()}"


def free_name(wish: str, taken: set[str]) -> str:
    """A name that nothing has yet; taken from now on."""
    name, number = wish, 2
    while name in taken:
        name, number = f"{wish}{number}", number + 1
    taken.add(name)
    return name


@lru_cache(maxsize=1)
def _source() -> cst.Module:
    return cst.parse_module(_SOURCE.read_text())


@lru_cache(maxsize=1)
def _body() -> list[Any]:
    return [each for each in _source().body if isinstance(each, cst.ClassDef | cst.FunctionDef)]


@lru_cache(maxsize=1)
def _body_for_others() -> list[Any]:
    return [each for each in _body() if each.name.value != _MADE_ALIKE]


@lru_cache(maxsize=1)
def _body_for_alike() -> list[Any]:
    """Without what makes and remembers anything by a constructor."""
    body = [each for each in _body() if each.name.value != _MADE]
    for place, each in enumerate(body):
        if each.name.value == _CLASS:
            methods = [part for part in each.body.body if _CONSTRUCTOR not in defined_names(part)]
            body[place] = each.with_changes(body=each.body.with_changes(body=methods))
        elif each.name.value == _MADE_ALIKE:
            body[place] = each.with_changes(name=cst.Name(_MADE))
    needed = reachable(cst.Module(body), roots=(_CLASS, _SETTLE))
    return [each for each in body if each in needed]


@lru_cache(maxsize=16)
def _renamed_body(is_made_alike: bool, names: frozenset[tuple[str, str]]) -> tuple[str, frozenset[str]]:
    """The text under other names, and what it uses; most files leave it the same ones, and renaming takes a while."""
    body = _body_for_alike() if is_made_alike else _body_for_others()
    return renamed(cst.Module(body), dict(names)).code.strip(), frozenset(_used(body))


def _used(statements: list[Any]) -> set[str]:
    return {name for each in statements for name in used_names(each)}


def _imported(statement: cst.CSTNode) -> frozenset[str]:
    is_import = isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Import)
    return defined_names(statement) if is_import else frozenset()


def _literal(form: Any) -> str:
    """The form as an expression, with dtypes and types themselves instead of their names."""
    match form:
        case ("tensor", dtype, shape, stride):
            return f'("tensor", torch.{dtype}, {tuple(shape)!r}, {tuple(stride)!r})'
        case ("type", name):
            return f'("type", {name})'
        case [("type", str(kind)), *forms] if kind.startswith("tuple"):
            return f'("tuple", {tuple(kind.split()[1:])!r}, {_literal(forms)})'
        case ("value", float(value)) if isinf(value):  # which has no literal of its own
            return f'("value", {"-" if value < 0 else ""}1e999)'
        case list():
            return f"[{', '.join(map(_literal, form))}]"
        case dict():
            return "{" + ", ".join(f"{name!r}: {_literal(value)}" for name, value in form.items()) + "}"
    return repr(form)
