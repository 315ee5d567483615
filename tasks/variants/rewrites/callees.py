"""What a call in a forward calls, where the text of the file tells that, and tells that its body could stand there."""

import ast
import builtins
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from tasks.variants.attributes import ANY_MODULE, ANYTHING, attributes_given, made_by_torch
from tasks.variants.kernels.model import handed_on, hooked, settings
from tasks.variants.names import defined_names, used_names, walk
from tasks.variants.rewrites.branches import settled
from tasks.variants.rewrites.forward import returned, statements_of, writes_in_place
from tasks.variants.rewrites.reading import code_of, dotted_name
from tasks.variants.rewriting import ENTRY
from tasks.variants.scopes import LOOKING_AT_NAMES, read_from_outside, shows_names, stored_in
from tasks.variants.text import text_of

_OF_ITS_CLASS = frozenset({"super", "__class__"})
_NOT_MOVED = (cst.Lambda, cst.Yield, cst.Await)


@dataclass(frozen=True, slots=True)
class Callee:
    """A function whose body can stand where it is called."""

    parameters: tuple[str, ...]
    defaults: Mapping[str, cst.BaseExpression]
    """Of the parameters whose defaults mean the same where the call stands."""
    statements: tuple[cst.SimpleStatementLine, ...]
    result: cst.BaseExpression
    self_text: str | None
    """What `self` is where the call stands; None in plain functions."""
    stored: frozenset[str]
    """Names that it gives a value otherwise than as a parameter."""
    read: frozenset[str]
    """Names that it has from its file or from Python."""
    names: frozenset[str]
    """All that are in its text."""
    read_late: frozenset[str]
    """Names that a generator of it reads, which may be when forward has given them another value."""
    may_change: bool
    """Whether computing it may change something that is there already."""


def finder(program: cst.Module) -> Callable[[cst.Call], Callee | None]:
    """What a call in the forward of ModelNew calls, where it can be put in."""
    file = _File.of(program)
    kinds = _kinds_of_modules(file, ENTRY, "self")
    values = settings(text_of(program)) if ENTRY in file.classes else {}

    def find(call: cst.Call) -> Callee | None:
        name = dotted_name(call.func) or ""
        if name in file.functions:
            return _callee(file.functions[name], file, self_text=None)
        if name in kinds:
            owner, attribute, self_text = kinds[name], "forward", name
            if "__call__" in _names_of(file.classes[owner]):
                return None
        else:
            self_text, _, attribute = name.rpartition(".")
            owner = ENTRY if self_text == "self" else kinds.get(self_text, "")
        method = file.method(owner, attribute)
        if method is None:
            return None
        known = {
            f"self.{each}": values.get(f"{self_text}.{each}")
            for each in file.given[owner]
            if file.is_fixed(owner, each)
        }
        return _callee(settled(method, known), file, self_text=self_text, owner=owner)

    return find


@dataclass(frozen=True, slots=True)
class _File:
    """Functions and classes of a file that are what their texts say, and what it gives values besides."""

    times: Counter[str]
    """How often each name gets a value at the top of the file, or by a function of it that says `global`."""
    functions: Mapping[str, cst.FunctionDef]
    classes: Mapping[str, cst.ClassDef]
    given: Mapping[str, Counter[str]]
    """By the class, how often each attribute of `self` gets a value in its text."""
    given_from_outside: frozenset[str]
    """Attributes that get a value of whatever else has them."""
    hooked: Mapping[str, frozenset[str]]
    """By the class, which attributes of `self` may have hooks, which a body put in would not run; "" is `self`."""

    @classmethod
    def of(cls, program: cst.Module) -> "_File":
        imported = {name for each in program.body for name in _plainly_imported(each)}
        others = (name for each in program.body for name in defined_names(each) - _plainly_imported(each))
        times = Counter([*imported, *others])  # `import torch` and `import torch.nn` give torch one value
        times.update(each.name.value for node in walk(program) if isinstance(node, cst.Global) for each in node.names)
        once = [each for each in program.body if times[getattr(getattr(each, "name", None), "value", "")] == 1]
        classes = {each.name.value: each for each in once if isinstance(each, cst.ClassDef) and not each.decorators}
        given = {name: list(attributes_given(_tree(each))) for name, each in classes.items()}
        whole = _tree(program)
        of_torch = made_by_torch(whole)
        return cls(
            times=times,
            functions={each.name.value: each for each in once if isinstance(each, cst.FunctionDef)},
            classes=classes,
            given={name: Counter(found for whose, found in each if whose == "self") for name, each in given.items()},
            given_from_outside=frozenset(
                found for whose, found in attributes_given(whole) if whose not in {"self", *of_torch}
            ),
            hooked={
                name: frozenset([*hooked(_tree(each)), *(found for found in hooked(whole) if found == ANYTHING)])
                for name, each in classes.items()
            },
        )

    def method(self, owner: str, name: str) -> cst.FunctionDef | None:
        """What objects of a class have as a method, if it stands in the class and nothing replaces it."""
        if owner not in self.classes or self._times_given(owner, name):
            return None
        found = [each for each in self.classes[owner].body.body if name in defined_names(each)]
        return found[0] if len(found) == 1 and isinstance(found[0], cst.FunctionDef) else None

    def is_fixed(self, owner: str, name: str) -> bool:
        """Whether an attribute of a class's objects is what the constructor makes it, from there to the end."""
        own = self.classes[owner]
        is_plain = [code_of(each.value) for each in own.bases] in (["nn.Module"], ["torch.nn.Module"])
        others = {name, "__getattribute__", "__setattr__"} & _names_of(own)
        # What train() and eval() give, no text of the file tells.
        return name != "training" and is_plain and not others and self._times_given(owner, name) == 1

    def modules(self, owner: str) -> Iterator[tuple[str, str]]:
        """Attributes that hold an object of one of the file's classes from the beginning to the end, and the class."""
        init = self.method(owner, "__init__")
        unsure = self.hooked[owner].union(handed_on(_tree(init)) if init else ())
        for target, value in (each for node in walk(init) for each in _given_values(node)) if init else ():
            match target, value:
                case cst.Attribute(value=cst.Name("self"), attr=cst.Name(value=name)), cst.Call(
                    func=cst.Name(value=made)
                ) if made in self.classes and not unsure & {name, ANYTHING} and "" not in self.hooked[made]:
                    if self._times_given(owner, name) == 1 and not self._times_given(owner, ANY_MODULE):
                        yield name, made

    def _times_given(self, owner: str, name: str) -> int:
        """How often an attribute of a class's objects may get a value."""
        return sum(self.given[owner][each] + (each in self.given_from_outside) for each in (name, ANYTHING))


def _tree(node: cst.CSTNode) -> ast.Module:
    return ast.parse(text_of(node) if isinstance(node, cst.Module) else code_of(node))


def _given_values(node: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """What an assignment gives a value and which, be it one of several that are given one each."""
    match node:
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Tuple(elements=targets))], value=cst.Tuple(elements=values)
        ) if len(targets) == len(values):
            if not any(isinstance(each, cst.StarredElement) for each in (*targets, *values)):
                yield from ((target.value, value.value) for target, value in zip(targets, values, strict=True))
        case cst.Assign(targets=[cst.AssignTarget(target=target)], value=value):
            yield target, value


def _plainly_imported(statement: cst.CSTNode) -> frozenset[str]:
    """Names that a statement gives by `import a` and `import a.b`, which are the same module each time."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Import(names=names)]):
            if all(each.asname is None for each in names):
                return defined_names(statement)
    return frozenset()


def _kinds_of_modules(file: _File, kind: str, prefix: str, depth: int = 4) -> dict[str, str]:
    """Names of the file's own classes by the attribute that holds an object of them, such as "self.block.norm"."""
    found: dict[str, str] = {}
    for name, made in file.modules(kind) if depth and kind in file.classes else ():
        found[f"{prefix}.{name}"] = made
        found |= _kinds_of_modules(file, made, f"{prefix}.{name}", depth - 1)
    return found


def _callee(function: cst.FunctionDef, file: _File, *, self_text: str | None, owner: str = "") -> Callee | None:
    """The function, where it is nothing but assignments and a return at its end, and means the same in the forward."""
    decorators = [code_of(each.decorator) for each in function.decorators]
    parameters = function.params
    if decorators not in ([], ["staticmethod"]) or not isinstance(function.body, cst.IndentedBlock):
        return None
    if isinstance(parameters.star_arg, cst.Param) or parameters.star_kwarg or function.asynchronous:
        return None
    statements = [each for each in statements_of(function) if not _is_docstring(each)]
    before, result = statements[:-1], returned(statements[-1]) if statements else None
    if result is None or not all(_is_assignment(each) for each in before):
        return None
    every = [*parameters.posonly_params, *parameters.params, *parameters.kwonly_params]
    names = [parameter.name.value for parameter in every]
    if self_text is not None and decorators == []:
        if names[:1] != ["self"]:
            return None
        names = names[1:]
    elif self_text is not None:
        self_text = None
    stored, read = stored_in(function), read_from_outside(function)
    if (self_text is not None and "self" in stored) or not _can_stand_elsewhere(function, read, is_own=owner == ENTRY):
        return None
    of_the_class = _names_of(file.classes[owner]) if owner else set()
    return Callee(
        parameters=tuple(names),
        defaults={
            each.name.value: each.default
            for each in every
            if each.default is not None and _is_constant(each.default, file, of_the_class)
        },
        statements=tuple(each for each in before if isinstance(each, cst.SimpleStatementLine)),
        result=result,
        self_text=self_text,
        stored=frozenset(stored),
        read=frozenset(read),
        names=frozenset(each.value for each in walk(function) if isinstance(each, cst.Name)),
        read_late=frozenset(
            name for each in walk(function) if isinstance(each, cst.GeneratorExp) for name in used_names(each)
        ),
        may_change=any(may_change(each) for each in (*before, result)),
    )


def _can_stand_elsewhere(function: cst.FunctionDef, read: set[str], *, is_own: bool) -> bool:
    """Whether names of a function may be others, and whether it may stand in ModelNew."""
    if any(isinstance(each, _NOT_MOVED) for each in walk(function)) or shows_names(function):
        return False
    of_its_class = _OF_ITS_CLASS & read or any(map(_is_private, walk(function)))
    return not read & LOOKING_AT_NAMES and (is_own or not of_its_class)


def _is_private(node: cst.CSTNode) -> bool:
    """Whether it is a name that Python reads as another one in each class."""
    return isinstance(node, cst.Name) and node.value.startswith("__") and not node.value.endswith("__")


def _is_constant(value: cst.BaseExpression, file: _File, of_the_class: set[str]) -> bool:
    """Whether a default is the same wherever it is computed: of literals, and names that get one value in the file."""

    def is_known(name: str) -> bool:
        root = name.partition(".")[0]
        return root not in of_the_class and file.times[root] == (root not in vars(builtins))

    def is_constant(part: cst.BaseExpression) -> bool:
        match part:
            case cst.Integer() | cst.Float() | cst.Imaginary() | cst.SimpleString():
                return True
            case cst.Name() | cst.Attribute():
                return is_known(dotted_name(part) or "")
            case cst.UnaryOperation(expression=inner):
                return is_constant(inner)
            case cst.BinaryOperation(left=left, right=right):
                return is_constant(left) and is_constant(right)
            case cst.Tuple(elements=elements):
                return all(isinstance(each, cst.Element) and is_constant(each.value) for each in elements)
            case cst.Call(func=func, args=args):
                name = dotted_name(func) or ""
                is_number = name in ("float", "int") or name.startswith("math.")
                return is_number and is_known(name) and all(not each.star and is_constant(each.value) for each in args)
        return False

    return is_constant(value)


def _names_of(owner: cst.ClassDef) -> set[str]:
    return {name for each in owner.body.body for name in defined_names(each)}


def _is_docstring(statement: cst.CSTNode) -> bool:
    match statement:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString())]):
            return True
    return False


def _is_assignment(statement: cst.CSTNode) -> bool:
    """Whether it assigns to names, and does nothing else."""
    return isinstance(statement, cst.SimpleStatementLine) and is_plain(statement) and returned(statement) is None


def may_change(node: cst.CSTNode) -> bool:
    """Whether it may change something that is there already, be it within a function or module that is not known.

    Methods of tensors and functions of libraries say by their names, or by an argument, that they do.
    """
    return writes_in_place(node) or any(_is_unknown(each) for each in walk(node) if isinstance(each, cst.Call))


def _is_unknown(call: cst.Call) -> bool:
    root, _, rest = (dotted_name(call.func) or "").partition(".")
    if any(argument.keyword and argument.keyword.value == "inplace" for argument in call.args):
        return True
    return root in ("", "self") or (not rest and root not in vars(builtins))


def is_plain(statement: cst.SimpleStatementLine) -> bool:
    """Whether it assigns to names, or returns a value."""
    match statement.body:
        case [cst.Return(value=cst.BaseExpression())]:
            return True
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Name())])]:
            return True
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=elements))])]:
            return all(isinstance(element.value, cst.Name) for element in elements)
    return False
