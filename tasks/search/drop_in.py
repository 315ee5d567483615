"""The drop-in file: the user's text, the candidate's code, and a class that chooses between the two at every call."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import libcst as cst

from tasks.errors import ProblemError, RecordError
from tasks.search.survey import Survey, survey
from tasks.search.user_file import UserFile
from tasks.variants.candidate import Candidate
from tasks.variants.layout import laid_out
from tasks.variants.names import defined_names, renamed, substituted

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
_CONSTANTS = ("FORMS", "NAMED_FORMS", "TRAINING", "DEVICE", "JUDGED")
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
    taken = {name for statement in module.body for name in _bound(statement)}
    name = file.class_name
    reference, fast_name = (_free(f"{wish}{name}", taken) for wish in ("Reference", "Fast"))
    own_part = _with_reference(module, name, reference)
    fast_part = _beside(laid_out(fast), module, {ENTRY: fast_name}, taken | {reference})
    taken |= {own for statement in cst.parse_module(fast_part).body for own in _bound(statement)}
    names = {"Reference": reference, "Fast": fast_name, "DropIn": name}
    helpers = [each.name.value for each in _runtime_body() if each.name.value not in names]
    names |= {own: _free(f"_{own.lstrip('_')}", taken) for own in (*_CONSTANTS, *helpers, "Described", "description")}
    runtime = _runtime(file, facts, names, device=device, judged=_judged_description(file, own_part, names))
    decorators = "".join(
        module.code_for_node(decorator)
        for statement in module.body
        if isinstance(statement, cst.ClassDef) and statement.name.value == name
        for decorator in statement.decorators
    )
    runtime = runtime.replace(f"\nclass {name}(", f"\n{decorators}class {name}(", 1)
    source = f"{own_part.rstrip()}\n\n\n{MARK}.\n\n{fast_part.strip()}\n\n\n{runtime.strip()}\n"
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
    """The module with the class called otherwise, and its old name for whatever uses it further down."""
    body: list[Any] = []
    for statement in module.body:
        if isinstance(statement, cst.ClassDef) and statement.name.value == name:
            bare = statement.with_changes(decorators=[])  # a registry is to know the class that is fast
            body += [substituted(bare, {name: reference}), cst.parse_statement(f"{name} = {reference}")]
        else:
            body.append(statement)
    return module.with_changes(body=body).code


def _beside(fast: cst.Module, module: cst.Module, new_names: dict[str, str], taken: set[str]) -> str:
    """The candidate's statements under names that the file does not have; what the file says too is left out."""
    known = _texts(laid_out(module))
    body = [each for each in fast.body if fast.code_for_node(_bare(each)).strip() not in known]
    for statement in body:
        for own in _bound(statement):
            if own in taken and own not in new_names:
                new_names[own] = _free(f"fast_{own}", taken)
    changed = renamed(fast.with_changes(body=body, header=[]), new_names)
    if all(_only_defines(statement) for statement in body):
        return changed.code
    return _guarded(changed, fast=new_names[ENTRY])


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


def _judged_description(file: UserFile, own_part: str, names: dict[str, str]) -> str:
    """What the drop-in will find its module described as, made as the file's own functions make it.

    Raises:
        RecordError: if that cannot be told, or it is another one each time.
    """
    returned = f"{file.constructor_function}()" if file.constructor_function else "[]"
    text = _DESCRIPTION.format(returned=returned, mode=_mode_call(file))
    nothing = Survey(inputs=(), named_inputs={}, constructor=None)
    runtime = _runtime(file, nothing, names, device="cpu", judged="", more=text)
    description = _described_in_a_process(
        replace(
            file,
            source=f"{own_part.rstrip()}\n\n\n{runtime}\n",
            class_name=names["Described"],
            inputs_function=names["description"],
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


def _runtime(
    file: UserFile,
    facts: Survey,
    names: dict[str, str],
    *,
    device: str,
    judged: str,
    more: str = "",
) -> str:
    """The class that chooses, and what it needs to know.

    Args:
        names: under which the file has what the class, its helpers and constants are called there.
        more: further statements that use them.
    """
    imports = "import functools\nimport hashlib\nimport warnings\n\nimport torch\n\n"
    forms = _literal(list(facts.inputs)), _literal(dict(facts.named_inputs))
    values = (*forms, repr(judged_mode(file)), repr(device), repr(judged))
    constants = "".join(f"{names[own]} = {value}\n" for own, value in zip(_CONSTANTS, values, strict=True))
    body = cst.Module([*_runtime_body(), *cst.parse_module(more).body])
    return imports + constants + "\n\n" + renamed(body, names).code.strip()


def _runtime_body() -> list[Any]:
    module = cst.parse_module(_RUNTIME.read_text())
    return [each for each in module.body if isinstance(each, cst.ClassDef | cst.FunctionDef)]


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
