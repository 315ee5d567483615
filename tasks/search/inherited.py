"""A class with what it inherits from classes of its own file in its own text, where rewrites look for it.

Nothing here runs the file. What cannot be told from its text, such as what a class of another file has, stays where it
is, and so does all that comes after it in the order in which Python looks. Where a text might compute something else,
what `super()` calls is left where it is: naming the class that it skips is always right.
"""

import ast
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import libcst as cst
import libcst.matchers as m

from tasks.problems.problem import Problem
from tasks.search.drop_in_runtime import free_name
from tasks.search.names import Said, all_spelt_out, spelt_out
from tasks.search.texts import in_lines
from tasks.search.user_file import KERNELBENCH_CLASS
from tasks.variants.attributes import ANYTHING
from tasks.variants.names import (
    defined_names,
    exchanged,
    names_bound_in,
    reachable,
    renamed,
    substituted,
    used_names,
    walk,
)
from tasks.variants.rewrites.inlining import inlined
from tasks.variants.rewriting import ENTRY, as_candidate_program
from tasks.variants.scopes import LOOKING_AT_NAMES, given_in, gives, own_name, scopes_of, shows_names, stored_in

FORWARD, CONSTRUCTOR = "forward", "__init__"
_WITHOUT_METHODS = frozenset({"object", "abc.ABC", "typing.Generic"})
_HOOKS = frozenset({"__init_subclass__", "__getattribute__", "__set_name__"})
_NOT_MOVED = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Import, ast.ImportFrom, ast.Global),
    *(ast.Nonlocal, ast.Delete, ast.NamedExpr, ast.Match, ast.Return, ast.Yield, ast.YieldFrom, ast.Await),
)
_DEFERRED = cst.FunctionDef | cst.ClassDef | cst.Lambda | cst.GeneratorExp
_BARE = m.Call(func=m.Name("super"), args=[])
_NUMBERS = m.Integer() | m.Float() | m.Name("None") | m.Name("True") | m.Name("False")
Node = TypeVar("Node", bound=cst.CSTNode)


def put_together(problem: Problem) -> Problem:
    """The problem with all that its forward and constructor inherit within its file in the text of Model itself.

    Calls of inherited methods are put in too, where that is safe: such methods would stand in the way of rewrites that
    read one forward.
    """
    try:
        source = _put_together(cst.parse_module(problem.source))
        symtable.symtable(source, problem.problem_id, "exec")
    except (SyntaxError, RecursionError):  # the latter of expressions that are nested too deeply
        return problem
    return problem if source == problem.source else replace(problem, source=source)


def _put_together(module: cst.Module) -> str:
    whole = with_inherited(module, KERNELBENCH_CLASS)
    if whole is not module and _can_be_inlined(whole):
        known = {each.name.value for each in _methods(_class_of(module, KERNELBENCH_CLASS))}
        program = inlined(as_candidate_program(whole.code))
        entry = _class_of(program, ENTRY)
        while unused := {each.name.value for each in _methods(entry)} - known - _reached(entry):
            body = [each for each in entry.body.body if not defined_names(each) & unused]
            entry = entry.with_changes(body=entry.body.with_changes(body=body))
        (own,) = renamed(program.with_changes(body=[entry]), {ENTRY: KERNELBENCH_CLASS}).body
        old = _class_of(whole, KERNELBENCH_CLASS)
        whole = whole.with_changes(body=[own if each is old else each for each in whole.body])
    return whole.code


def with_inherited(module: cst.Module, name: str) -> cst.Module:
    """The module whose class has its forward, the methods that calls, and its whole constructor in its own text.

    It computes what it did. The module itself where nothing of that is inherited within the file.
    """
    lineage = _Lineage.of(module, name)
    if len(lineage.owners) < 2:
        return module
    methods = _Calls(lineage, {each.value for each in walk(module) if isinstance(each, cst.Name)}).found
    constructor = _constructor(lineage, 0)
    if constructor is not None:
        methods[CONSTRUCTOR] = constructor
    own = lineage.owners[0]
    methods = {each: method for each, method in methods.items() if method not in own.body.body}
    if not methods:
        return module
    rest = [each for each in in_lines(own).body.body if not m.matches(each, m.SimpleStatementLine(body=[m.Pass()]))]
    body: list[Any] = [
        methods.pop(each.name.value, each) if isinstance(each, cst.FunctionDef) else each for each in rest
    ]
    added = [methods.pop(CONSTRUCTOR)] if CONSTRUCTOR in methods else []
    changed = own.with_changes(body=cst.IndentedBlock([*body, *added, *methods.values()]))
    return module.with_changes(body=[changed if each is own else each for each in module.body])


def hidden_forward(source: str, name: str) -> str | None:
    """The class of the file that has the forward, where that cannot be told to be the one that is called."""
    try:
        module = with_inherited(cst.parse_module(source), name)
    except RecursionError:  # of expressions that are nested too deeply
        return None
    classes = {each.name.value: each for each in module.body if isinstance(each, cst.ClassDef)}
    waiting = [name]
    for each in waiting:
        owner = classes.pop(each, None)
        if owner is not None and any(FORWARD in defined_names(part) for part in owner.body.body):
            return None if each == name else each
        waiting += _bases(owner) if owner is not None else []
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Lineage:
    """The class and its parents in the order in which Python looks, as far as they are in the file without a doubt."""

    owners: tuple[cst.ClassDef, ...]
    said: Said
    given: frozenset[str]
    """Attributes that anything in the file gives a value, of whatever object."""

    @classmethod
    def of(cls, module: cst.Module, name: str) -> "_Lineage":
        said, given = Said.by(module.code), _attributes_given(module)
        classes: dict[str, cst.ClassDef] = {}
        kinds: dict[str, type] = {}

        def kind_of(base: str) -> type:
            if base not in kinds:
                kinds[base] = type(base, (object,), {})
            return kinds[base]

        for statement in module.body:
            if isinstance(statement, cst.ClassDef) and said.times[statement.name.value] == 1:
                own = statement.name.value
                try:  # the order is Python's own, of classes that have nothing but their bases
                    kinds[own] = type(own, tuple(map(kind_of, _bases(statement))) or (object,), {})
                except TypeError:
                    continue
                classes[own] = statement
        is_known = name in classes and "super" not in said.bound and given is not None
        owners: list[cst.ClassDef] = []
        for kind in kinds[name].__mro__ if is_known and not _is_inherited_by_its_parts(module, name) else ():
            if kind.__name__ in classes:
                if _may_be_changed(classes[kind.__name__], said, is_first=not owners):
                    break
                owners.append(classes[kind.__name__])
            elif _origin(kind.__name__, said) not in _WITHOUT_METHODS:
                break
        return cls(owners=tuple(owners), said=said, given=given or frozenset())

    def place(self, name: str, after: int = -1) -> int | None:
        """Which of the classes is the first to have it, of those after a place."""
        found = (place for place in range(after + 1, len(self.owners)) if name in _bound(self.owners[place]))
        return next(found, None)

    def method(self, name: str, place: int) -> cst.FunctionDef | None:
        """What that class has as this, as it means the same in the first of the classes; None if that cannot be told.

        Private names are spelt out, and what `super()` skips is said.
        """
        owner = self.owners[place]
        found = [each for each in _spelt(owner).body.body if name in defined_names(each)]
        if len(found) != 1 or not isinstance(function := found[0], cst.FunctionDef) or function.asynchronous:
            return None
        if place == 0:
            return next(each for each in _methods(owner) if name in _bound_by(each, owner))
        if name in self.given or function.type_parameters or not self._has_the_same_head(function):
            return None
        function = in_lines(function)
        own, given = own_name(function), given_in(function)
        if {"super", owner.name.value} & given or "__class__" in used_names(function.body):
            return None
        if own in stored_in(function):
            return None
        said = [cst.Arg(cst.Name(owner.name.value)), cst.Arg(cst.Name(own or ""))]
        bare = {each: each.with_changes(args=said) for each in _own_parts(function.body) if m.matches(each, _BARE)}
        function = exchanged(function, bare) if own is not None else function
        return function if _says_what_super_skips(function.body) else None

    def _has_the_same_head(self, function: cst.FunctionDef) -> bool:
        """Whether decorators, defaults and annotations are known to mean the same in the first of the classes."""
        heads = [*function.decorators, *_annotations(function), *_defaults(function)]
        bound = {name for owner in self.owners for name in _bound(owner)}
        if bound & {name for head in heads for name in used_names(head)}:
            return False
        return all(map(self._is_constant, _defaults(function))) and all(
            self._is_of_torch(each.decorator) or m.matches(each.decorator, m.Name("staticmethod"))
            for each in function.decorators
        )

    def _is_constant(self, value: cst.BaseExpression) -> bool:
        """Whether it is one and the same wherever the file computes it."""
        root = value
        while isinstance(root, cst.Attribute):
            root = root.value
        if not isinstance(root, cst.Name) or self.said.times[root.value] > 1:
            return _is_literal(value)
        return root is value or None not in self.said.bound.get(root.value, {None})  # what is imported stays

    def _is_of_torch(self, decorator: cst.BaseExpression) -> bool:
        name = decorator.func if isinstance(decorator, cst.Call) else decorator
        origin = _origin(_code(name), self.said) or ""
        return origin.startswith("torch.") and not (isinstance(decorator, cst.Call) and decorator.args)


class _Calls:
    """The forward, and the methods of the same object that it calls, as they are to stand in the class."""

    def __init__(self, lineage: _Lineage, taken: set[str]) -> None:
        self._lineage, self._taken = lineage, taken
        self._called: dict[tuple[str, int], str] = {}
        self.found: dict[str, cst.FunctionDef] = {}
        place = lineage.place(FORWARD)
        if place is not None:
            self._gather(FORWARD, place, called=FORWARD)

    def _gather(self, name: str, place: int, *, called: str) -> bool:
        method = self._lineage.method(name, place)
        if method is None:
            return False
        self.found[called] = method
        if method.name.value != called:
            method = method.with_changes(name=cst.Name(called))
        new: dict[cst.CSTNode, cst.CSTNode] = {}
        for call, wanted in _super_calls(method, self._lineage.owners[place].name.value):
            next_place = self._lineage.place(wanted, after=place)
            if next_place is None or wanted == CONSTRUCTOR:
                continue
            key = (wanted, next_place)
            if key not in self._called:
                wish = f"{wanted}_of_{self._lineage.owners[next_place].name.value}"
                self._called[key] = free_name(wish, self._taken)
                if not self._gather(wanted, next_place, called=self._called[key]):
                    del self._called[key]
                    continue
            new[call] = cst.Attribute(cst.Name(own_name(method) or "self"), cst.Name(self._called[key]))
        self.found[called] = method = exchanged(method, new)
        for wanted in dict.fromkeys(_attributes(method)):
            first = self._lineage.place(wanted)
            if first is not None and wanted not in self.found and wanted != CONSTRUCTOR:
                self._gather(wanted, first, called=wanted)
        return True


def _constructor(lineage: _Lineage, start: int) -> cst.FunctionDef | None:
    """The constructor from that class on, with those put in that it calls by `super()` in a statement of its own."""
    place = lineage.place(CONSTRUCTOR, after=start - 1)
    function = lineage.method(CONSTRUCTOR, place) if place is not None else None
    if place is None or function is None or not isinstance(function.body, cst.IndentedBlock):
        return None
    calls = [(at, call) for at, each in enumerate(function.body.body) if (call := _constructing(each, lineage, place))]
    if len(calls) != 1 or lineage.place(CONSTRUCTOR, after=place) is None:
        return function
    inner = _constructor(lineage, place + 1)
    return (inner and _merged(function, *calls[0], inner)) or function


def _constructing(statement: cst.CSTNode, lineage: _Lineage, place: int) -> cst.Call | None:
    """The call by which a constructor has the next one run."""
    owner = lineage.owners[place].name.value
    whose = _BARE | m.Call(func=m.Name("super"), args=[m.Arg(m.Name(owner)), m.Arg(m.Name("self"))])
    call = m.Call(func=m.Attribute(value=whose, attr=m.Name(CONSTRUCTOR)))
    if m.matches(statement, m.SimpleStatementLine(body=[m.Expr(call)])):
        return statement.body[0].value  # type: ignore[attr-defined]
    return None


def _merged(function: cst.FunctionDef, at: int, call: cst.Call, inner: cst.FunctionDef) -> cst.FunctionDef | None:
    """A constructor with another one's statements in the place of a call; None where that may not be the same.

    All that is the other's own gets names that nothing else has, so that neither reads what the other writes.
    """
    tree = ast.parse(_code(inner)).body[0]
    assert isinstance(tree, ast.FunctionDef)
    nodes = [each for statement in tree.body for each in ast.walk(statement)]
    targets = _targets_within(nodes)
    within = {each.id for each in targets}  # what comprehensions give, nothing beside them sees
    stored = {
        each.id
        for each in nodes
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each not in targets
    }
    parameters = {each.arg for each in ast.walk(tree.args) if isinstance(each, ast.arg)} - {"self"}
    own = parameters | stored
    free = {each.id for each in nodes if isinstance(each, ast.Name)} - own - {"self"}
    names = {each.value for each in walk(function) if isinstance(each, cst.Name)}
    if any(isinstance(each, _NOT_MOVED) or _binds_by_a_word(each) for each in nodes) or shows_names(inner):
        return None
    if within & (own | {"self"}) or free & given_in(function) or free.union(used_names(function)) & LOOKING_AT_NAMES:
        return None
    if function.decorators or inner.decorators or {own_name(each) for each in (function, inner)} != {"self"}:
        return None
    if "self" in stored_in(function) | stored:
        return None
    taken = names | ({each.value for each in walk(inner) if isinstance(each, cst.Name)} - own)
    statements = _statements(inner)
    if _passes_on(function, call):
        if parameters & names:
            return None
        function = function.with_changes(params=inner.params)
        new_names = {name: free_name(name, taken) for name in sorted(stored - parameters)}
        moved = [substituted(each, new_names) for each in statements]
    else:
        values = _values(call, inner)
        if values is None:
            return None
        new_names = {name: free_name(name, taken) for name in [*values, *sorted(stored - parameters)]}
        known = {name: value for name, value in values.items() if m.matches(value, _NUMBERS) and name not in stored}
        moved = [substituted(_with_numbers(each, known), new_names) for each in statements]
        used = {name for each in moved for name in used_names(each)}
        moved[:0] = [
            cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(new_names[name]))], value)])
            for name, value in values.items()
            if new_names[name] in used or name not in known
        ]
    assert isinstance(function.body, cst.IndentedBlock)
    body = [*function.body.body[:at], *moved, *function.body.body[at + 1 :]]
    return function.with_changes(body=function.body.with_changes(body=body))


def _passes_on(function: cst.FunctionDef, call: cst.Call) -> bool:
    """Whether it takes anything, only to give that to the next constructor."""
    parameters = function.params
    stars = parameters.star_arg, parameters.star_kwarg
    if not all(isinstance(each, cst.Param) for each in stars) or len(parameters.params) != 1:
        return False
    if parameters.kwonly_params or parameters.posonly_params or len(call.args) != len(stars):
        return False
    names = [each.name.value for each in stars if isinstance(each, cst.Param)]
    given = [(each.star, each.value.value) for each in call.args if isinstance(each.value, cst.Name)]
    uses = [each.value for each in walk(function.body) if isinstance(each, cst.Name)]
    return given == [("*", names[0]), ("**", names[1])] and all(uses.count(each) == 1 for each in names)


def _values(call: cst.Call, inner: cst.FunctionDef) -> dict[str, cst.BaseExpression] | None:
    """What each parameter is by a call, in the order in which it is computed; None where that cannot be told."""
    parameters = inner.params
    if isinstance(parameters.star_arg, cst.Param) or parameters.star_kwarg or any(each.star for each in call.args):
        return None
    by_place = [each.name.value for each in (*parameters.posonly_params, *parameters.params)][1:]
    by_name = {each.name.value for each in (*parameters.params, *parameters.kwonly_params)}
    positional = [each.value for each in call.args if each.keyword is None]
    named = {each.keyword.value: each.value for each in call.args if each.keyword is not None}
    values = {**dict(zip(by_place, positional, strict=False)), **named}
    if len(positional) > len(by_place) or not named.keys() <= by_name - {*by_place[: len(positional)]}:
        return None
    for each in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params):
        name = each.name.value
        if name != "self" and name not in values:
            if each.default is None or not _is_literal(each.default):
                return None
            values[name] = each.default
    return values


def _with_numbers(statement: cst.BaseStatement, known: Mapping[str, cst.BaseExpression]) -> cst.BaseStatement:
    """The statement with known numbers where they are arguments or assigned: rewrites read there what layers are."""
    new: dict[cst.CSTNode, cst.CSTNode] = {}
    for node in walk(statement):
        match node:
            case (
                cst.Arg(value=cst.Name(value=name) as value, star="") | cst.Assign(value=cst.Name(value=name) as value)
            ):
                if name in known:
                    new[value] = known[name].deep_clone()
    return exchanged(statement, new)


def _targets_within(nodes: list[ast.AST]) -> set[ast.Name]:
    """The names in what comprehensions give a value."""
    targets = [each.target for each in nodes if isinstance(each, ast.comprehension)]
    return {each for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}


def _binds_by_a_word(node: ast.AST) -> bool:
    """Whether it gives a name after `as`."""
    return (isinstance(node, ast.withitem) and node.optional_vars is not None) or (
        isinstance(node, ast.ExceptHandler) and node.name is not None
    )


def _super_calls(method: cst.FunctionDef, owner: str) -> list[tuple[cst.Attribute, str]]:
    """What a method itself calls by `super()`: the function called, and its name."""
    own = own_name(method)
    if own is None or {"super", owner} & given_in(method) or own in stored_in(method):
        return []
    named = m.Call(func=m.Name("super"), args=[m.Arg(m.Name(owner)), m.Arg(m.Name(own))])
    called = m.Attribute(value=_BARE | named)
    calls = [each.func for each in _own_parts(method.body) if isinstance(each, cst.Call)]
    return [(each, each.attr.value) for each in calls if isinstance(each, cst.Attribute) and m.matches(each, called)]


def _says_what_super_skips(node: cst.CSTNode) -> bool:
    """Whether all that is said of `super` outside of classes within it would be the same in another class."""
    if isinstance(node, cst.ClassDef):
        return True
    if isinstance(node, cst.Call) and m.matches(node.func, m.Name("super")) and len(node.args) == 2:
        return True
    return not m.matches(node, m.Name("super")) and all(map(_says_what_super_skips, node.children))


def _own_parts(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node and what is in it, but for what has a scope of its own: `super()` is another there."""
    yield node
    for child in node.children:
        if not isinstance(child, _DEFERRED):
            yield from _own_parts(child)


def _attributes_given(module: cst.Module) -> frozenset[str] | None:
    """Attributes that a file gives a value, of whatever object; None where it may give classes any."""
    found = set[str]()
    for node in ast.walk(ast.parse(all_spelt_out(module).code)):
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                while isinstance(node, ast.Attribute):  # `Base.forward.__code__ = ...` is of account too
                    found.add(node.attr)
                    node = node.value
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=str(name)), *_]):
                found.add(name)
            case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id="self"), *_]):
                found.add(ANYTHING)
            case ast.Call(func=ast.Name(id="setattr")):
                return None
            case ast.Attribute(attr="__dict__" | "__setattr__"):
                found.add(ANYTHING)
    return frozenset(found)


def _is_inherited_by_its_parts(module: cst.Module, name: str) -> bool:
    """Whether the class is made of classes that inherit from it: what `super()` means differs in these."""
    nodes = (each for statement in reachable(module, roots=(name,)) for each in walk(statement))
    return any(isinstance(each, cst.ClassDef) and name in _bases(each) for each in nodes)


def _may_be_changed(owner: cst.ClassDef, said: Said, *, is_first: bool) -> bool:
    """Whether something can see to it that a class has other methods than its text."""
    is_usual = all(_origin(_code(each.value), said) == "abc.ABCMeta" for each in owner.keywords)
    return bool(_HOOKS & _bound(owner)) or not is_usual or bool(owner.decorators and not is_first)


def _can_be_inlined(module: cst.Module) -> bool:
    """Whether the methods of Model are nothing but their texts, and mean the same names wherever these stand."""
    given = _attributes_given(module)
    methods = [each for each in _methods(_class_of(module, KERNELBENCH_CLASS)) if each.name.value != CONSTRUCTOR]
    names = {each.name.value for each in methods}
    if given is None or given & {ANYTHING, *names} or any(ENTRY in defined_names(each) for each in module.body):
        return False
    if any(own_name(each) != "self" for each in methods if not each.decorators):
        return False
    called = [each for each in reachable(module, roots=(KERNELBENCH_CLASS,)) if isinstance(each, cst.FunctionDef)]
    scopes = [table for function in (*methods, *called) for table in scopes_of(function)]
    symbols = [each for table in scopes for each in table.get_symbols()]
    read = {each.get_name() for each in symbols if each.is_global()}
    return read.isdisjoint({each.get_name() for each in symbols if gives(each)})


def _class_of(module: cst.Module, name: str) -> cst.ClassDef:
    return next(each for each in module.body if isinstance(each, cst.ClassDef) and each.name.value == name)


def _methods(owner: cst.ClassDef) -> Iterator[cst.FunctionDef]:
    return (each for each in owner.body.body if isinstance(each, cst.FunctionDef))


def _statements(function: cst.FunctionDef) -> list[cst.BaseStatement]:
    """Those of its body, but for what only says what it is for."""
    assert isinstance(function.body, cst.IndentedBlock)
    said = m.SimpleStatementLine(body=[m.Expr(m.SimpleString() | m.ConcatenatedString()) | m.Pass()])
    return [each for each in function.body.body if not m.matches(each, said)]


def _attributes(function: cst.FunctionDef) -> Iterator[str]:
    """Attributes of the object itself that a method reads, in order."""
    own = own_name(function)
    for node in walk(function.body):
        match node:
            case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value=attribute)) if name == own:
                yield attribute


def _reached(owner: cst.ClassDef) -> set[str]:
    """Methods that anything in the class may mean, and those that Python calls itself."""
    named = {node.attr.value for node in walk(owner) if isinstance(node, cst.Attribute)}
    return named | {FORWARD} | {each.name.value for each in _methods(owner) if each.name.value.startswith("__")}


def _defaults(function: cst.FunctionDef) -> list[cst.BaseExpression]:
    parameters = [each for each in walk(function.params) if isinstance(each, cst.Param)]
    return [each.default for each in parameters if each.default is not None]


def _annotations(function: cst.FunctionDef) -> list[cst.CSTNode]:
    parameters = [each for each in walk(function.params) if isinstance(each, cst.Param)]
    return [each for each in (*(every.annotation for every in parameters), function.returns) if each is not None]


def _is_literal(value: cst.BaseExpression) -> bool:
    """Whether it is written out, and nothing can change it."""
    try:
        hash(ast.literal_eval(_code(value)))
    except (ValueError, TypeError, SyntaxError):
        return False
    return True


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def _spelt(owner: cst.ClassDef) -> cst.ClassDef:
    return spelt_out(owner, owner.name.value)


def _bound(owner: cst.ClassDef) -> set[str]:
    return names_bound_in(_spelt(owner).body.body)


def _bound_by(statement: cst.CSTNode, owner: cst.ClassDef) -> frozenset[str]:
    spelt = zip(owner.body.body, _spelt(owner).body.body, strict=True)
    return defined_names(next(other for each, other in spelt if each is statement))


def _bases(owner: cst.ClassDef) -> list[str]:
    """What it inherits from, as the text has it, without the types of a generic class."""
    values = [each.value.value if isinstance(each.value, cst.Subscript) else each.value for each in owner.bases]
    return [*map(_code, values)]


def _origin(base: str, said: Said) -> str | None:
    """What a base is imported as; itself where nothing of the file is called so."""
    root, dot, rest = base.partition(".")
    origins = said.bound.get(root, frozenset({root}))
    (origin,) = origins if len(origins) == 1 else (None,)
    return None if origin is None else origin + dot + rest
