"""A class with what it inherits from classes of its own file in its own text, where rewrites look for it.

Nothing here runs the file. What cannot be told from its text, such as what a class of another file has, stays where it
is, and so does all that comes after it in the order in which Python looks.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst
import libcst.matchers as m

from tasks.problems.problem import Problem
from tasks.search.drop_in_runtime import free_name
from tasks.search.names import Said, spelt_out
from tasks.search.texts import in_lines
from tasks.search.user_file import KERNELBENCH_CLASS
from tasks.variants.names import defined_names, names_bound_in, renamed, substituted, used_names, walk
from tasks.variants.rewrites.inlining import inlined
from tasks.variants.rewriting import ENTRY, as_candidate_program

FORWARD, CONSTRUCTOR = "forward", "__init__"
_WITHOUT_METHODS = frozenset({"object", "abc.ABC", "typing.Generic"})
_ENDS = cst.Return | cst.Yield | cst.Global | cst.Nonlocal
_SIMPLE = cst.Name | cst.Integer | cst.Float | cst.SimpleString


def put_together(problem: Problem) -> Problem:
    """The problem with all that its forward and constructor inherit within its file in the text of Model itself.

    Calls of inherited methods are put in too: such methods would stand in the way of rewrites that read one forward.
    """
    module = cst.parse_module(problem.source)
    whole = with_inherited(module, KERNELBENCH_CLASS)
    if whole is module:
        return problem
    known = {each.name.value for each in _methods(_class_of(module, KERNELBENCH_CLASS))}
    program = inlined(as_candidate_program(whole.code))
    entry = _class_of(program, ENTRY)
    while unused := {each.name.value for each in _methods(entry)} - known - _reached(entry):
        body = [each for each in entry.body.body if not defined_names(each) & unused]
        entry = entry.with_changes(body=entry.body.with_changes(body=body))
    body = [entry if defined_names(each) == {ENTRY} else each for each in program.body]
    return replace(problem, source=renamed(program.with_changes(body=body), {ENTRY: KERNELBENCH_CLASS}).code)


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
    module = with_inherited(cst.parse_module(source), name)
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

    @classmethod
    def of(cls, module: cst.Module, name: str) -> "_Lineage":
        said = Said.by(module.code)
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
        owners = []
        for kind in kinds[name].__mro__ if name in classes else ():
            if kind.__name__ in classes:
                owners.append(classes[kind.__name__])
            elif _origin(kind.__name__, said) not in _WITHOUT_METHODS:
                break
        return cls(owners=tuple(owners))

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
            return next(each for each in owner.body.body if name in _bound_by(each, owner))  # type: ignore[return-value]
        heads = [*function.decorators, *_defaults_and_annotations(function)]
        local = {each for head in heads for each in used_names(head)} & _bound(owner)
        kinds = {each.decorator.value for each in function.decorators if isinstance(each.decorator, cst.Name)}
        names = {each.value for each in walk(function.body) if isinstance(each, cst.Name)}
        if local or kinds & {"property", "classmethod"} or "__class__" in names:
            return None
        function = in_lines(function)
        return function.visit(_SayingWhatIsSkipped(owner.name.value, _self_of(function)))  # type: ignore[return-value]


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
        if method is None or isinstance(method, cst.SimpleStatementLine):
            return False
        self.found[called] = method
        if method.name.value != called:
            method = method.with_changes(name=cst.Name(called))
        calls = _SuperCalls(self._lineage.owners[place].name.value)
        method.visit(calls)
        for call, wanted in calls.found:
            next_place = self._lineage.place(wanted, after=place)
            if next_place is None:
                continue
            key = (wanted, next_place)
            if key not in self._called:
                wish = f"{wanted}_of_{self._lineage.owners[next_place].name.value}"
                self._called[key] = free_name(wish, self._taken)
                if not self._gather(wanted, next_place, called=self._called[key]):
                    del self._called[key]
                    continue
            own = cst.Attribute(cst.Name(_self_of(method) or "self"), cst.Name(self._called[key]))
            method = method.deep_replace(call, own)  # type: ignore[assignment]
        self.found[called] = method
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
    (at, call) = calls[0]
    inner = _constructor(lineage, place + 1)
    if inner is None or any(isinstance(each, _ENDS) for each in walk(inner.body)):
        return function
    before, after = function.body.body[:at], function.body.body[at + 1 :]
    if _passes_on(function, call):
        function = function.with_changes(params=inner.params)
        statements = [*_statements(inner)]
    else:
        put_in = _put_in(call, inner, {each.value for each in walk(function) if isinstance(each, cst.Name)})
        if put_in is None:
            return function
        statements = put_in
    return function.with_changes(body=function.body.with_changes(body=[*before, *statements, *after]))


def _constructing(statement: cst.CSTNode, lineage: _Lineage, place: int) -> cst.Call | None:
    """The call by which a constructor has the next one run."""
    owner = lineage.owners[place].name.value
    whose = m.Call(func=m.Name("super"), args=[]) | m.Call(
        func=m.Name("super"), args=[m.Arg(m.Name(owner)), m.Arg(m.Name())]
    )
    call = m.Call(func=m.Attribute(value=whose, attr=m.Name(CONSTRUCTOR)))
    if m.matches(statement, m.SimpleStatementLine(body=[m.Expr(call)])):
        return statement.body[0].value  # type: ignore[attr-defined]
    return None


def _passes_on(function: cst.FunctionDef, call: cst.Call) -> bool:
    """Whether it takes anything, only to give that to the next constructor."""
    parameters = function.params
    stars = parameters.star_arg, parameters.star_kwarg
    if not all(isinstance(each, cst.Param) for each in stars) or len(parameters.params) != 1:
        return False
    if parameters.kwonly_params or parameters.posonly_params:
        return False
    names = [each.name.value for each in stars if isinstance(each, cst.Param)]
    given = [(each.star, each.value.value) for each in call.args if isinstance(each.value, cst.Name)]
    uses = [each.value for each in walk(function.body) if isinstance(each, cst.Name)]
    return given == [("*", names[0]), ("**", names[1])] and all(uses.count(each) == 1 for each in names)


def _put_in(call: cst.Call, inner: cst.FunctionDef, taken: set[str]) -> list[cst.BaseStatement] | None:
    """The statements of a constructor with the arguments of a call; None where these cannot be told."""
    parameters = inner.params
    if isinstance(parameters.star_arg, cst.Param) or parameters.star_kwarg or any(each.star for each in call.args):
        return None
    own, *every = [*parameters.posonly_params, *parameters.params, *parameters.kwonly_params]
    names = [each.name.value for each in every]
    positional = [each.value for each in call.args if each.keyword is None]
    named = {each.keyword.value: each.value for each in call.args if each.keyword is not None}
    defaults = {each.name.value: each.default for each in every if each.default is not None}
    values = {**defaults, **dict(zip(names, positional, strict=False)), **named}
    if len(positional) > len(names) or values.keys() != {*names} or own.name.value != "self":
        return None
    statements = _statements(inner)
    written = names_bound_in(statements) - {"self"}  # whose attributes are assigned to
    taken |= {each.value for each in walk(inner) if isinstance(each, cst.Name)} - {*names, *written}
    direct = {name: value for name, value in values.items() if name not in written and isinstance(value, _SIMPLE)}
    new_names = {name: free_name(name, taken) for name in [*names, *sorted(written)] if name not in direct}
    given = [
        cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(new_names[name]))], value)])
        for name, value in values.items()
        if name not in direct
    ]
    putting = _Putting(direct)
    return [*given, *(substituted(each, new_names).visit(putting) for each in statements)]  # type: ignore[list-item]


class _Putting(cst.CSTTransformer):
    """Puts values where names are read."""

    def __init__(self, values: Mapping[str, cst.BaseExpression]) -> None:
        self.values = values

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        return updated_node.with_changes(name=original_node.name)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self.values.get(original_node.value, updated_node)


class _SayingWhatIsSkipped(cst.CSTTransformer):
    def __init__(self, owner: str, own: str | None) -> None:
        self.owner, self.own = owner, own

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if self.own is None or not m.matches(original_node, m.Call(func=m.Name("super"), args=[])):
            return updated_node
        return updated_node.with_changes(args=[cst.Arg(cst.Name(self.owner)), cst.Arg(cst.Name(self.own))])


class _SuperCalls(cst.CSTVisitor):
    """What a method calls by `super()`: the function called, and its name."""

    def __init__(self, owner: str) -> None:
        named = m.Call(func=m.Name("super"), args=[m.Arg(m.Name(owner)), m.Arg(m.Name())])
        self._called = m.Attribute(value=m.Call(func=m.Name("super"), args=[]) | named)
        self.found: list[tuple[cst.Attribute, str]] = []

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and m.matches(node.func, self._called):
            self.found.append((node.func, node.func.attr.value))


def _class_of(module: cst.Module, name: str) -> cst.ClassDef:
    return next(each for each in module.body if isinstance(each, cst.ClassDef) and each.name.value == name)


def _methods(owner: cst.ClassDef) -> Iterator[cst.FunctionDef]:
    return (each for each in owner.body.body if isinstance(each, cst.FunctionDef))


def _statements(function: cst.FunctionDef) -> list[cst.BaseStatement]:
    """Those of its body, but for what only says what it is for."""
    assert isinstance(function.body, cst.IndentedBlock)
    said = m.SimpleStatementLine(body=[m.Expr(m.SimpleString() | m.ConcatenatedString()) | m.Pass()])
    return [each for each in function.body.body if not m.matches(each, said)]


def _self_of(function: cst.FunctionDef) -> str | None:
    parameters = [*function.params.posonly_params, *function.params.params]
    return parameters[0].name.value if parameters else None


def _attributes(function: cst.FunctionDef) -> Iterator[str]:
    """Attributes of the object itself that a method reads, in order."""
    own = _self_of(function)
    for node in walk(function.body):
        match node:
            case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value=attribute)) if name == own:
                yield attribute


def _reached(owner: cst.ClassDef) -> set[str]:
    """Methods that anything in the class may mean, and those that Python calls itself."""
    named = {node.attr.value for node in walk(owner) if isinstance(node, cst.Attribute)}
    return named | {FORWARD} | {each.name.value for each in _methods(owner) if each.name.value.startswith("__")}


def _defaults_and_annotations(function: cst.FunctionDef) -> Iterator[cst.CSTNode]:
    for node in walk(function.params):
        if isinstance(node, cst.Param):
            yield from (each for each in (node.default, node.annotation) if each is not None)
    if function.returns is not None:
        yield function.returns


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
    return [cst.Module([]).code_for_node(each) for each in values]


def _origin(base: str, said: Said) -> str | None:
    """What a base is imported as; itself where nothing of the file is called so."""
    root, dot, rest = base.partition(".")
    origins = said.bound.get(root, frozenset({root}))
    (origin,) = origins if len(origins) == 1 else (None,)
    return None if origin is None else origin + dot + rest
