"""The drop-in file: the user's text, the candidate's code, and a class that chooses between the two at every call."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import libcst as cst
import libcst.matchers as m

from tasks.errors import ProblemError, RecordError
from tasks.search.constructors import is_made_alike
from tasks.search.drop_in_runtime import Runtime, free_name
from tasks.search.inherited import with_inherited
from tasks.search.known_calls import AGAIN, replays_known_calls, with_known_calls
from tasks.search.names import Renaming, Said, imports_of, spelt_out
from tasks.search.survey import Survey, survey
from tasks.search.user_file import UserFile
from tasks.variants.candidate import Candidate
from tasks.variants.layout import laid_out
from tasks.variants.names import defined_names, used_names
from tasks.variants.rewriting import with_annotations_as_texts

MARK = "# Written by cuda-l1 optimize"
ENTRY = "ModelNew"
ORIGIN = "drop-in"
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
    def forward(self, *description):
        return description


def description():
    from tasks.judge.model_state import constructor_arguments
    from tasks.search.surveying import changed_by_a_call, classes_as_they_were, tensors_apart, unlike_each_other

    def made():
        positional, named = constructor_arguments({returned}, DropIn)
        return DropIn(*positional, **named){mode}

    asked = _compared, _own_classes, _compared_of
    if {is_why_wanted}:
        return [unlike_each_other(made, asked)]
    module = made()
    seen = _Seen(module)
    changed = changed_by_a_call(module, {inputs}(), asked)
    with classes_as_they_were(module, asked):
        apart = tensors_apart(module, {inputs}())
    parts = (path for path, each in module.named_modules() if each._forward_hooks or each._forward_pre_hooks)
    hooked = "{hooks}" + ", ".join(filter(None, parts))
    return [seen.digest or (hooked if seen._has_hooks else ""), apart, changed]


def _compared(module):
    tensors = [*module._parameters.items(), *module._buffers.items()]
    return {{**_plain(module), **{{name: repr(_form(each)) for name, each in tensors}}}}


def _compared_of(kind):
    return {{name: each for name, each in _of_class(vars(kind)).items() if type(each) is str}}
"""
_HOOKS = "hooks of "
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
    changed_by_a_call: str
    """Names of what a call of the user's module changes, so that it is not what was judged any more."""


def drop_in(file: UserFile, facts: Survey, candidate: Candidate, *, problem_id: str, device: str = "cpu") -> DropIn:
    """The user's file with a faster class of the same name.

    The text of the file stays as it is, but for the name of the class, which other classes may use before and after.

    Args:
        candidate: as a provider wrote it: defines ModelNew, without the files it may read.
        device: kind of device that it was judged on.

    Raises:
        RecordError: if the candidate's text cannot be merged into a file, or the file could not tell what was judged.
    """
    try:
        return _merged(file, facts, candidate, problem_id=problem_id, device=device)
    except RecursionError as error:
        raise RecordError(
            f"{file.path.name} has expressions that are nested too deeply, such as a sum of hundreds of terms"
        ) from error


def _merged(file: UserFile, facts: Survey, candidate: Candidate, *, problem_id: str, device: str) -> DropIn:
    module = cst.parse_module(file.source)
    try:
        fast = cst.parse_module(candidate.source)
    except cst.ParserSyntaxError as error:
        raise RecordError(f"candidate {candidate.candidate_id} does not parse: {error}") from error
    said = Said.by(file.source)
    if said.times[file.class_name] > 1:
        raise RecordError(f"{file.path.name} gives the name {file.class_name} to something else too")
    taken = {*said.bound, *said.used}
    name = file.class_name
    reference, fast_name = (free_name(f"{wish}{name}", taken) for wish in ("Reference", "Fast"))
    own_part = _with_reference(module, name, reference)
    taken.add(reference)
    new_names = {ENTRY: fast_name}
    fast = laid_out(fast)
    with_again = with_known_calls(fast) if replays_known_calls(candidate, facts, device) else None
    fast_part = _beside(with_again or fast, module, said, name, new_names, taken)
    bound = said.bound.keys() | Said.by(fast_part).bound.keys()
    taken |= bound
    decorators = "".join(
        module.code_for_node(decorator)
        for statement in module.body
        if isinstance(statement, cst.ClassDef) and statement.name.value == name
        for decorator in statement.decorators
    )
    runtime = Runtime.for_file(
        said,
        bound,
        taken,
        known={"Reference": reference, "Fast": fast_name, "DropIn": name},
        more=("Described", "description", "_compared", "_compared_of"),
        decorators=decorators,
    )
    judged, apart, changed = _judged_description(file, own_part, runtime)
    is_alike = any(
        is_made_alike(
            _class_of(fast, ENTRY),
            _class_of(laid_out(with_annotations_as_texts(each)), name),
            new_names,
            is_put_into_evaluation=not file.is_kernelbench,
        )
        for each in (module, with_inherited(module, name))  # the same class in two texts; a candidate has either
    )
    added = runtime.text(
        facts,
        apart=apart,
        training=judged_mode(file),
        device=device,
        judged=judged,
        again=AGAIN if with_again else "",
        is_made_alike=is_alike,
    )
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
        changed_by_a_call=re.sub(rf"\b{reference}\.", f"{name}.", changed),
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
    known = _texts(laid_out(module)) | _texts(laid_out(with_annotations_as_texts(module)))  # a model may write either
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
                new_names[own] = free_name(f"fast_{own}", taken)
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
            new_names.setdefault(name, free_name(f"fast_{name}", taken))
            yield f'{new_names[name]} = __import__("{alias.name}")'
        else:
            alias.asname = new_names[name] = free_name(f"fast_{name}", taken)
            yield ast.unparse(only)


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


def _judged_description(file: UserFile, own_part: str, runtime: Runtime) -> tuple[str, str, str]:
    """What the drop-in will find its module described as, made as the file's own functions make it.

    And which tensors among its inputs are one, as `surveying.tensors_apart` has it, and what a call changes of it.

    Raises:
        RecordError: if that cannot be told, or it is another one each time.
    """
    returned = f"{file.constructor_function}()" if file.constructor_function else "[]"
    nothing = Survey(inputs=(), named_inputs={}, constructor=None)

    def described(*, is_why_wanted: bool) -> UserFile:
        text = _DESCRIPTION.format(
            returned=returned,
            mode=_mode_call(file),
            inputs=file.inputs_function,
            hooks=_HOOKS,
            is_why_wanted=is_why_wanted,
        )
        added = runtime.text(
            nothing, apart="None", training=judged_mode(file), device="cpu", judged="", is_made_alike=True, more=text
        )
        return replace(
            file,
            source=f"{own_part.rstrip()}\n\n\n{runtime.names['Fast']} = None\n{added}\n",
            class_name=runtime.names["Described"],
            inputs_function=runtime.names["description"],
            constructor_function=None,
        )

    description = _described_in_a_process(described(is_why_wanted=False))
    if description is None:
        names = _unlike_each_time(described(is_why_wanted=True))
        names = re.sub(rf"\b{runtime.names['Reference']}\.", f"{file.class_name}.", names)
        why = f": {names} {'are' if ', ' in names else 'is'} not the same again" if names else ""
        raise RecordError(
            f"{file.class_name} is another one each time that it is made{why}, such as by a number drawn anew or by "
            "counting instances"
        )
    if description[0].startswith(_HOOKS):
        raise RecordError(
            f"{file.class_name} has hooks inside, in {description[0].removeprefix(_HOOKS)}, such as those of modules "
            "that are lazy until their first call, and of torch.nn.utils.weight_norm and spectral_norm "
            "(torch.nn.utils.parametrizations.weight_norm has none)"
        )
    if not description[0]:
        raise RecordError(f"{file.class_name} has parts, functions or __slots__ that cannot be compared")
    return description


@lru_cache(maxsize=8)
def _described_in_a_process(file: UserFile) -> tuple[str, str, str] | None:
    """What the stand-in of the file gets as its inputs; None where they are not twice the same.

    What only one of two calls changes, such as the first, is not named: it is no change for good.
    """
    try:
        (kind, description), (other_kind, apart), (changed_kind, changed) = survey(file).inputs
    except ProblemError as error:
        raise RecordError(f"what the module is made of cannot be told: {error}") from error
    changed = changed if changed_kind == "value" else ""
    return (description, apart, changed) if kind == other_kind == "value" else None


@lru_cache(maxsize=8)
def _unlike_each_time(file: UserFile) -> str:
    """What the stand-in of the file names where it is asked what is another one each time; empty if it cannot tell."""
    try:
        ((kind, names),) = survey(file).inputs
    except ProblemError:
        return ""
    return str(names) if kind == "value" else ""


def _mode_call(file: UserFile) -> str:
    """What puts a module into the mode that it is judged in."""
    return "" if file.is_kernelbench else ".eval()"


def _class_of(module: cst.Module, name: str) -> cst.ClassDef | None:
    """The only class of the name."""
    classes = [each for each in module.body if isinstance(each, cst.ClassDef) and each.name.value == name]
    return classes[0] if len(classes) == 1 else None


def _texts(module: cst.Module) -> set[str]:
    return {module.code_for_node(_bare(statement)).strip() for statement in module.body}


def _bare(statement: Any) -> Any:
    return statement.with_changes(leading_lines=[])


def _bound(statement: cst.CSTNode) -> set[str]:
    return {name for name in defined_names(statement) if name != "*"}
