"""The drop-in file: the user's text, the candidate's code, and a class that chooses between the two at every call."""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import libcst as cst
import libcst.matchers as m

from tasks.errors import ProblemError, RecordError
from tasks.search.names import Renaming, Said, imports_of, spelt_out
from tasks.search.survey import Survey, survey
from tasks.search.user_file import UserFile
from tasks.variants.candidate import Candidate
from tasks.variants.layout import laid_out
from tasks.variants.names import defined_names, renamed, substituted, used_names, walk

MARK = "# Written by cuda-l1 optimize"
ENTRY = "ModelNew"
ORIGIN = "drop-in"
_RUNTIME = Path(__file__).with_name("drop_in_class.py")
_DEPENDS_ON_MODE = re.compile(
    r"training|\b(\w*[Dd]ropout\w*|\w*[Bb]atch_?[Nn]orm\w*|\w*[Ii]nstance_?[Nn]orm\w*|R?ReLU_|rrelu|RReLU|Lazy\w+"
    r"|Multihead\w+|Transformer\w+|LSTM|GRU|RNN)\b|\.(train|eval)\("
)
_OTHER_MODULES = re.compile(r"^\s*(?:import|from)\s+(?!(?:torch|math|typing|functools|itertools|__future__)\b)", re.M)
_JUDGED = """

def ModelNew(*arguments, **options):
    return {made}
"""
_DESCRIPTION = """

class Described(torch.nn.Module):
    def forward(self, description):
        return description


def description():
    from tasks.judge.model_state import constructor_arguments

    positional, named = constructor_arguments({returned}, DropIn)
    return [_described(DropIn(*positional, **named){mode})]
"""
_CONSTANTS = ("FORMS", "NAMED_FORMS", "TRAINING", "DEVICE", "JUDGED", "ALIKE", "CLASSES")
_SETTLE = "_settle"
_GUARD = """try:
    pass
except Exception as error:
    {fast}_reason = f"{{type(error).__name__}}: {{error}}"

    def {fast}(*arguments, **options):
        raise RuntimeError({fast}_reason)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class DropIn:
    """A file that can stand where the user's stands."""

    source: str
    judged: Candidate
    """The same text with one function more, which makes the judge judge exactly what is written."""


def drop_in(file: UserFile, facts: Survey, candidate: Candidate, *, problem_id: str, device: str = "cpu") -> DropIn:
    """The user's file with a faster class of the same name.

    The text of the file stays as it is, but for the name of the class, which other classes may use before and after.

    Args:
        candidate: as a provider wrote it: defines ModelNew, without the files it may read.
        device: kind of device that it was judged on.

    Raises:
        RecordError: if the candidate's text cannot be merged into a file, or the file could not tell what was judged.
    """
    module = cst.parse_module(file.source)
    try:
        fast = cst.parse_module(candidate.source)
    except cst.ParserSyntaxError as error:
        raise RecordError(f"candidate {candidate.candidate_id} does not parse: {error}") from error
    said = Said.by(file.source)
    if said.times[file.class_name] > 1:
        raise RecordError(f"{file.path.name} gives the name {file.class_name} to something else below the class")
    taken = {*said.bound, *said.used}
    name = file.class_name
    reference, fast_name = (_free(f"{wish}{name}", taken) for wish in ("Reference", "Fast"))
    own_part = _with_reference(module, name, reference)
    taken.add(reference)
    new_names = {ENTRY: fast_name}
    fast_part = _beside(laid_out(fast), module, said, name, new_names, taken)
    bound = said.bound.keys() | Said.by(fast_part).bound.keys()
    taken |= bound
    names = {"Reference": reference, "Fast": fast_name, "DropIn": name}
    helpers = [each.name.value for each in _runtime_body() if each.name.value not in names]
    names |= {own: _free(f"_{own.lstrip('_')}", taken) for own in (*_CONSTANTS, *helpers, "Described", "description")}
    imports = _runtime_imports(bound, said, names, taken)
    decorators = "".join(
        module.code_for_node(decorator)
        for statement in module.body
        if isinstance(statement, cst.ClassDef) and statement.name.value == name
        for decorator in statement.decorators
    )
    runtime = _Runtime(imports=imports, names=names, decorators=decorators)
    judged = _judged_description(file, own_part, runtime)
    alike = _is_made_alike(laid_out(fast), laid_out(module), file, new_names)
    added = runtime.text(file, facts, device=device, judged=judged, alike=alike)
    source = f"{own_part.rstrip()}\n\n\n{MARK}.\n\n{fast_part.strip()}\n\n\n{added.strip()}\n"
    made = f"{name}(*arguments, **options)"
    judged_source = source + _JUDGED.format(made=f"{made}{_mode_call(file)}")
    return DropIn(
        source=source,
        judged=Candidate(
            problem_id=problem_id,
            source=judged_source,
            origin=ORIGIN,
            recipe=candidate.recipe,
            parent_id=candidate.candidate_id,
        ),
    )


def judged_mode(file: UserFile) -> bool | None:
    """Whether the module was in training mode when it was judged; None where that makes no difference to it.

    It makes none where nothing in the text can tell the modes apart.
    """
    if not _DEPENDS_ON_MODE.search(file.source) and not _OTHER_MODULES.search(file.source):
        return None
    return file.is_kernelbench and "self.eval()" not in file.source


def _with_reference(module: cst.Module, name: str, reference: str) -> str:
    """The module with the class called otherwise, and its old name for whatever uses it, its own methods too."""
    body: list[Any] = []
    for statement in module.body:
        if isinstance(statement, cst.ClassDef) and statement.name.value == name:
            bare = statement.with_changes(decorators=[])  # a registry is to know the class that is fast
            own = spelt_out(bare, name).visit(_Skipping(name, reference))
            own = cst.ensure_type(own, cst.ClassDef).with_changes(name=cst.Name(reference))
            body += [own, cst.parse_statement(f"{name} = {reference}")]
        else:
            body.append(statement.visit(_Skipping(name, reference)))
    return module.with_changes(body=body).code


class _Skipping(cst.CSTTransformer):
    """Lets `super(Class, self)` still skip all of the class: what goes by its name is but a part."""

    def __init__(self, name: str, reference: str) -> None:
        self.skipped, self.reference = m.Call(func=m.Name("super"), args=[m.Arg(m.Name(name)), m.Arg()]), reference

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if not m.matches(original_node, self.skipped):
            return updated_node
        first = updated_node.args[0].with_changes(value=cst.Name(self.reference))
        return updated_node.with_changes(args=[first, *updated_node.args[1:]])


def _beside(
    fast: cst.Module, module: cst.Module, said: Said, class_name: str, new_names: dict[str, str], taken: set[str]
) -> str:
    """The candidate's statements under names that the file does not have; what the file says too is left out.

    Args:
        new_names: what its names are called in the file; those that are called otherwise there are put in.
    """
    known = _texts(laid_out(module))
    imports, body = list[str](), list[Any]()
    for statement in fast.body:
        text = fast.code_for_node(_bare(statement)).strip()
        match ast.parse(text).body if isinstance(statement, cst.SimpleStatementLine) else []:
            case [ast.Import() | ast.ImportFrom() as only]:  # whether the file has it, its layout does not tell
                imports += _import_lines(only, said, new_names, taken)
            case _ if text not in known and not _is_for_programs(statement):
                body.append(statement)
    for statement in body:
        for own in _bound(statement):
            if own in taken and own not in new_names:
                new_names[own] = _free(f"fast_{own}", taken)
    spelt = [
        spelt_out(each, class_name if each.name.value == ENTRY else each.name.value)
        if isinstance(each, cst.ClassDef) and each.name.value in new_names
        else each
        for each in body
    ]
    lines = [cst.parse_statement(line) for line in dict.fromkeys(imports)]
    if lines and spelt:
        spelt[0] = spelt[0].with_changes(leading_lines=[cst.EmptyLine(indent=False)] * 2)
    renaming = Renaming(new_names)
    body = [*lines, *(each.visit(renaming) for each in spelt)]
    changed = fast.with_changes(body=body, header=[])
    if all(_only_defines(statement) for statement in body):
        return changed.code
    return _guarded(changed, fast=new_names[ENTRY])


def _is_for_programs(statement: cst.CSTNode) -> bool:
    """Whether it does something only where the file is run as a program, and did so above."""
    return isinstance(statement, cst.If) and "__name__" in used_names(statement.test)


def _import_lines(
    statement: ast.Import | ast.ImportFrom, said: Said, new_names: dict[str, str], taken: set[str]
) -> Iterator[str]:
    """What the file needs for the names of an import to stand for the same in the statements beside it."""
    if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
        return  # it would be for the whole file, which may only begin with it
    for name, origin, only in imports_of(statement):
        (alias,) = only.names
        is_folder = alias.asname is None and "." in alias.name  # a part of it may be imported nowhere else
        if said.imports(name, origin) and not is_folder:
            continue
        if name == "*" or name not in taken or said.imports(name, origin):
            yield ast.unparse(only)
        elif is_folder:
            new_names.setdefault(name, _free(f"fast_{name}", taken))
            yield f'{new_names[name]} = __import__("{alias.name}")'
        else:
            alias.asname = new_names[name] = _free(f"fast_{name}", taken)
            yield ast.unparse(only)


def _is_made_alike(fast: cst.Module, module: cst.Module, file: UserFile, new_names: Mapping[str, str]) -> bool:
    """Whether the candidate's constructor makes what the user's does, so that nobody has to run it.

    It does where it is the same text, as is all of the class that it may use, and no name in it was given to another.
    """
    classes = [
        each
        for text, name in ((fast, ENTRY), (module, file.class_name))
        for each in text.body
        if isinstance(each, cst.ClassDef) and each.name.value == name
    ]
    if len(classes) != 2:
        return False
    candidate, own = classes[0], substituted(classes[1], {file.class_name: ENTRY})
    heads = [[fast.code_for_node(part) for part in (*each.bases, *each.keywords)] for each in (candidate, own)]
    parts = [_parts(each, is_put_into_evaluation=not file.is_kernelbench) for each in (candidate, own)]
    waiting = [name for each in parts for name in each if name.startswith("__")]
    needed: set[str] = set()
    used = {name for each in (*candidate.bases, *candidate.keywords) for name in used_names(each)}
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        for statement in parts[1].get(name, ()):
            used.update(used_names(statement))
            waiting += {node.value for node in walk(statement) if isinstance(node, cst.Name)}
    texts = [[[fast.code_for_node(each).strip() for each in part.get(name, ())] for name in needed] for part in parts]
    return heads[0] == heads[1] and texts[0] == texts[1] and not (used & new_names.keys()) - {ENTRY}


def _parts(statement: cst.ClassDef, *, is_put_into_evaluation: bool) -> dict[str, Sequence[cst.CSTNode]]:
    """The statements of a class by the names that they bind.

    Args:
        is_put_into_evaluation: the constructor may end so, since judging it needs that.
    """
    parts: dict[str, list[cst.CSTNode]] = {}
    for part in statement.body.body if isinstance(statement.body, cst.IndentedBlock) else ():
        bare: Any = _bare(part)
        is_constructor = isinstance(bare, cst.FunctionDef) and bare.name.value == "__init__"
        if is_put_into_evaluation and is_constructor and isinstance(bare.body, cst.IndentedBlock):
            lines: list[Any] = [
                each for each in bare.body.body if cst.Module([]).code_for_node(each).strip() != "self.eval()"
            ]
            if cst.Module(lines).code.strip() == "super().__init__(*arguments, **options)":
                continue
            bare = bare.with_changes(body=bare.body.with_changes(body=lines))
        for name in _bound(bare) or {"__doc__"}:
            parts.setdefault(name, []).append(bare)
    return {name: tuple(statements) for name, statements in parts.items()}


def _guarded(module: cst.Module, *, fast: str) -> str:
    """The statements so that one that fails, such as a build, costs the speed and not the module."""
    (guarded,) = cst.parse_module(_GUARD.format(fast=fast)).body
    assert isinstance(guarded, cst.Try)
    return cst.Module([guarded.with_changes(body=cst.IndentedBlock(module.body))]).code


def _only_defines(statement: cst.CSTNode) -> bool:
    """Whether nothing but a wrong text can make the statement fail."""
    match statement:
        case cst.ClassDef() | cst.FunctionDef():
            return True
        case cst.SimpleStatementLine(body=[cst.Import() | cst.ImportFrom()]):
            return True
        case cst.SimpleStatementLine(body=[cst.Assign(value=cst.Integer() | cst.Float() | cst.SimpleString())]):
            return True
    return False


def _judged_description(file: UserFile, own_part: str, runtime: "_Runtime") -> str:
    """What the drop-in will find its module described as, made as the file's own functions make it.

    Raises:
        RecordError: if that cannot be told, or it is another one each time.
    """
    returned = f"{file.constructor_function}()" if file.constructor_function else "[]"
    text = _DESCRIPTION.format(returned=returned, mode=_mode_call(file))
    nothing = Survey(inputs=(), named_inputs={}, constructor=None)
    added = runtime.text(file, nothing, device="cpu", judged="", alike=True, more=text)
    description = _described_in_a_process(
        replace(
            file,
            source=f"{own_part.rstrip()}\n\n\n{added}\n",
            class_name=runtime.names["Described"],
            inputs_function=runtime.names["description"],
            constructor_function=None,
        )
    )
    if not description:
        raise RecordError(
            f"{file.class_name} is another one each time that it is made, has hooks inside, or parts or "
            "functions that cannot be compared"
        )
    return description


@lru_cache(maxsize=8)
def _described_in_a_process(file: UserFile) -> str | None:
    """What the stand-in of the file gets as its input; None where it is nothing, or not twice the same."""
    try:
        ((kind, description),) = survey(file).inputs
    except ProblemError as error:
        raise RecordError(f"what the module is made of cannot be told: {error}") from error
    return description if kind == "value" else None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Runtime:
    """The class that chooses, and what it needs to know."""

    imports: str
    names: Mapping[str, str]
    """Under which the file has what the class, its helpers, constants and imports are called there."""
    decorators: str
    """Of the user's class, which may change it."""

    def text(self, file: UserFile, facts: Survey, *, device: str, judged: str, alike: bool, more: str = "") -> str:
        """As it is to be in a file.

        Args:
            alike: whether the fast class needs no constructor of its own.
            more: further statements that use what is there.
        """
        forms = _literal(list(facts.inputs)), _literal(dict(facts.named_inputs))
        values = (*forms, repr(judged_mode(file)), repr(device), repr(judged), repr(alike), "{}")
        constants = "".join(f"{own} = {value}\n" for own, value in zip(_CONSTANTS, values, strict=True))
        known = renamed(cst.parse_module(constants), self.names).code
        body = cst.Module([*_runtime_body(), *cst.parse_module(f"\n\n{_SETTLE}()\n{more}").body])
        name = self.names["DropIn"]
        text = renamed(body, self.names).code.strip().replace(f"class {name}(", f"{self.decorators}class {name}(", 1)
        return f"{self.imports}\n{known}\n\n{text}"


def _runtime_imports(bound: Iterable[str], said: Said, names: dict[str, str], taken: set[str]) -> str:
    """The imports that the class needs, under names that are its own where the file means something else by them."""
    lines = []
    wanted = [name for each in _runtime_source().body for name in _imported(each)]
    for name in wanted:
        if said.imports(name, name):
            continue
        if name in taken:
            names[name] = _free(f"_{name}", taken)
            lines.append(f"import {name} as {names[name]}\n")
        else:
            lines.append(f"import {name}\n")
    used = {name for each in _runtime_body() for name in used_names(each)}
    for name in sorted(used & vars(builtins).keys() & {*bound} - {"super"}):
        names[name] = _free(f"_{name}", taken)
        lines.append(f"from builtins import {name} as {names[name]}\n")
    return "".join(lines)


def _runtime_body() -> list[Any]:
    return [each for each in _runtime_source().body if isinstance(each, cst.ClassDef | cst.FunctionDef)]


@lru_cache(maxsize=1)
def _runtime_source() -> cst.Module:
    return cst.parse_module(_RUNTIME.read_text())


def _imported(statement: cst.CSTNode) -> set[str]:
    is_import = isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Import)
    return _bound(statement) if is_import else set()


def _mode_call(file: UserFile) -> str:
    """What puts a module into the mode that it is judged in."""
    return "" if file.is_kernelbench else ".eval()"


def _literal(form: Any) -> str:
    """The form as an expression, with dtypes and types themselves instead of their names."""
    match form:
        case ("tensor", dtype, shape, stride):
            return f'("tensor", torch.{dtype}, {tuple(shape)!r}, {tuple(stride)!r})'
        case ("type", name):
            return f'("type", {name})'
        case list():
            return f"[{', '.join(map(_literal, form))}]"
        case dict():
            return "{" + ", ".join(f"{name!r}: {_literal(value)}" for name, value in form.items()) + "}"
    return repr(form)


def _texts(module: cst.Module) -> set[str]:
    return {module.code_for_node(_bare(statement)).strip() for statement in module.body}


def _bare(statement: Any) -> Any:
    return statement.with_changes(leading_lines=[])


def _bound(statement: cst.CSTNode) -> set[str]:
    return {name for name in defined_names(statement) if name != "*"}


def _free(wish: str, taken: set[str]) -> str:
    """A name that nothing has yet; taken from now on."""
    name, number = wish, 2
    while name in taken:
        name, number = f"{wish}{number}", number + 1
    taken.add(name)
    return name
