"""What is known about a program without running it: its terms, their shapes, and how often temporaries are read."""

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field
from functools import lru_cache

import libcst as cst

from tasks.variants.names import defined_names, parts_of, used_names, walk
from tasks.variants.rewrites.forward import (
    assignment,
    find_method,
    grown_lists,
    read_counts,
    shadows_imports,
    single_assignment,
    statements_of,
    writes_in_place,
)
from tasks.variants.rewrites.reading import Reader
from tasks.variants.rewrites.shapes import Value
from tasks.variants.rewrites.terms import Term
from tasks.variants.rewrites.values import attributes_of, inputs_of, value_in_scope


@dataclass(frozen=True, slots=True)
class View:
    """A program with every temporary of forward assigned once, and what was read from it."""

    program: cst.Module
    forward: cst.FunctionDef
    modules: dict[str, Term]
    """Constructor of every attribute that is set in __init__, such as "self.linear"."""
    reads: Counter[str]
    """How often each temporary is read."""
    known: dict[str, Value]
    """Values of inputs, attributes and module constants."""
    sites: list[Term] = field(default_factory=list)
    """Every expression of forward, outer ones after the inner ones they hold."""
    terms: dict[cst.BaseExpression, Term] = field(default_factory=dict)
    """The term of every expression."""
    definitions: dict[str, Term] = field(default_factory=dict)
    """What temporaries hold, as far as it cannot change before it is read."""
    _inferred: dict[int, Value | None] = field(default_factory=dict)

    def value(self, term: Term) -> Value | None:
        """Shape and kind of what a term computes, None where they are not certain."""
        if term.key not in self._inferred:
            self._inferred[term.key] = value_in_scope(term, self.known, self.value)
        return self._inferred[term.key]

    def learn(self, name: str, value: Value | None) -> None:
        """Take a name's value for granted from now on, or for unknown."""
        self._inferred.clear()
        self.known.pop(name, None)
        if value is not None:
            self.known[name] = value

    def rank(self, term: Term) -> int | None:
        value = self.value(term)
        return value.rank if value else None

    def has_parameters(self) -> bool:
        return any(made.head.startswith("nn.") for made in self.modules.values())


@lru_cache(maxsize=64)
def view_of(program: cst.Module) -> View | None:
    """The view of a program; None where it has no forward with an ordinary body, or other names for modules."""
    single = single_assignment(program)
    forward = find_method(single, "forward") if single else None
    if single is None or forward is None or shadows_imports(forward):
        return None
    modules, known = attributes_of(single)
    known |= inputs_of(single, forward, known)
    statements = statements_of(forward)
    reads = read_counts(statements)
    view = View(single, forward, modules, reads, known)
    inlinable = frozenset(name for name, count in reads.items() if count == 1)
    _learn_of_temporaries(view)
    reader = Reader(inlinable=inlinable, modules=modules, rank_of=view.rank)
    for statement in statements:
        _read_statement(statement, view, reader)
    view.sites.extend(reader.terms)
    view.terms.update((term.node, term) for term in reader.terms if term.node is not None)
    return view


def _learn_of_temporaries(view: View) -> None:
    """Learn the values of temporaries; of those assigned several times, if all assignments give the same value.

    The first assignment's value is assumed, and dropped again if under that assumption another one differs.
    """
    reader = Reader(modules=view.modules, rank_of=view.rank)
    terms: list[tuple[str, Term]] = []
    uncertain: set[str] = set()
    for node in walk(view.forward.body):
        match node:
            case cst.For(target=cst.Name(value=name), iter=cst.Call(func=cst.Name(value="range"))):
                view.learn(name, Value((), "integer"))
            case cst.For(target=target):
                uncertain.update(used_names(target))
            case cst.SimpleStatementLine():
                plain = assignment(node)
                if plain is not None:
                    terms.append((plain[0], reader.read(plain[1])))
                elif not writes_in_place(node):
                    uncertain |= defined_names(node)
    for name, term in terms:
        value = view.value(term)
        if value is not None and name not in view.known:
            view.learn(name, value)
    for name in uncertain:
        view.learn(name, None)
    while wrong := [name for name, term in terms if name in view.known and view.known[name] != view.value(term)]:
        for name in wrong:
            view.learn(name, None)


def _read_statement(statement: cst.CSTNode, view: View, reader: Reader) -> None:
    """Read its expressions; what it assigns is known afterwards, until something it was made from changes."""
    plain = assignment(statement)
    if writes_in_place(statement):
        reader.definitions.clear()
    if plain is not None:
        name, value = plain
        term = reader.read(value)
        _forget({name}, reader)
        if not writes_in_place(statement) and name not in term.names:
            reader.definitions[name] = view.definitions[name] = term
        return
    changed = defined_names(statement) | grown_lists(statement)
    _forget(changed, reader)
    if isinstance(statement, cst.For) and isinstance(statement.body, cst.IndentedBlock):
        reader.read(statement.iter)
        for inner in statement.body.body:
            _read_statement(inner, view, reader)
    else:
        _read_expressions(statement, reader)
    _forget(changed, reader)


def _forget(names: Set[str], reader: Reader) -> None:
    """Drop what is known of names, and of everything that was made from them."""
    for name, term in list(reader.definitions.items()):
        if name in names or names & term.names:
            del reader.definitions[name]


def _read_expressions(node: cst.CSTNode, reader: Reader) -> None:
    """Read the outermost expressions of a statement; targets of assignments are none."""
    if isinstance(node, cst.BaseExpression):
        reader.read(node)
    elif not isinstance(node, cst.AssignTarget | cst.Parameters):
        for child in parts_of(node):
            _read_expressions(child, reader)
