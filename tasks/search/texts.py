"""A user's file as a problem: the text that is judged, and the text that providers are shown."""

import math
import re
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from tasks.problems.problem import Problem, Split
from tasks.search.bundle import bundle
from tasks.search.names import Renaming
from tasks.search.survey import Survey
from tasks.search.user_file import CONSTRUCTOR_FUNCTIONS, INPUT_FUNCTIONS, KERNELBENCH_CLASS, UserFile
from tasks.variants.candidate import Candidate
from tasks.variants.names import defined_names, reachable
from tasks.variants.rewriting import with_annotations_as_texts
from tasks.variants.scopes import own_name

_AS_ARGUMENTS = """

def get_inputs():
    returned = {inputs}()
    return returned if isinstance(returned, (list, tuple, dict)) else [returned]
"""
_NO_ARGUMENTS = """

def get_init_inputs():
    return []
"""
_GENERATORS = """

def get_inputs():
    return {inputs}


def get_init_inputs():
    return {constructor!r}
"""
_DEFINITION = re.compile(r"^(?:class|(?:async )?def) (\w+)", re.M)
_EVALUATES = "{own}.eval()"
_CONSTRUCTOR = f"""
def __init__(self, *arguments, **options):
    super().__init__(*arguments, **options)
    {_EVALUATES.format(own="self")}
"""
_OTHER_MODEL = "OtherModel"
_OWN_INPUTS = "example_inputs_of_user"
Node = TypeVar("Node", cst.ClassDef, cst.FunctionDef)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProblemTexts:
    """One file in the two forms that it is needed in."""

    shown: Problem
    """For providers: nothing but the program, with generators that tell the shapes."""
    judged: Problem
    """With the user's own generators, and everything the file needs from its folders."""
    prefix: str
    """What goes before a candidate so that it finds those files too."""
    given: str
    """Classes and functions that example arguments are made of; every program is handed its own."""

    def as_judged(self, candidate: Candidate) -> Candidate:
        """A candidate for the shown problem as one for the judged problem."""
        lacks_some = not {*_DEFINITION.findall(self.given)} <= {*_DEFINITION.findall(candidate.source)}
        source = with_prefix(candidate.source, self.prefix + (self.given if lacks_some else ""))
        return replace(candidate, problem_id=self.judged.problem_id, source=source)


def problem_texts(file: UserFile, facts: Survey, *, precision: str = "fp32") -> ProblemTexts:
    """The problem that a user's file poses.

    Raises:
        ProblemError: if it needs more files than can go with it.
    """
    prefix = bundle(file)
    shown = file.source if file.is_kernelbench else _shown(_as_model(file), file, facts)
    return ProblemTexts(
        shown=_problem(file, shown, precision),
        judged=_problem(file, judged_source(file, prefix), precision),
        prefix=prefix,
        given=_given(file),
    )


def judged_source(file: UserFile, prefix: str) -> str:
    """The text of the problem that is judged."""
    return with_prefix(file.source if file.is_kernelbench else _as_model(file) + _generators(file), prefix)


def with_prefix(source: str, prefix: str) -> str:
    """The program after the prefix, except for what must come first in a file."""
    if not prefix:
        return source
    lines = source.splitlines(keepends=True)
    module = cst.parse_module(source)
    at = 0
    metadata = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    for statement in module.body:
        match statement:
            case cst.SimpleStatementLine(body=[cst.ImportFrom(module=cst.Name("__future__"))]):
                at = metadata[statement].end.line
    return "".join([*lines[:at], prefix, *lines[at:]])


def _problem(file: UserFile, source: str, precision: str) -> Problem:
    return Problem(
        problem_id=file.path.stem,
        level=1,
        family=file.class_name,
        split=Split.HELD_OUT,
        source=source,
        precision=precision,
    )


def _as_model(file: UserFile) -> str:
    """The program with the chosen class called Model and put into evaluation mode when it is made."""
    module = cst.parse_module(file.source)
    new_names = {INPUT_FUNCTIONS[0]: _OWN_INPUTS}
    if file.class_name != KERNELBENCH_CLASS:
        new_names |= {KERNELBENCH_CLASS: _OTHER_MODEL, file.class_name: KERNELBENCH_CLASS}
    module = module.visit(Renaming(new_names))
    return in_evaluation_mode(module, KERNELBENCH_CLASS).code


def in_evaluation_mode(module: cst.Module, class_name: str) -> cst.Module:
    """The program with the class put into evaluation mode when it is made."""
    body = [_evaluating(each) if defined_names(each) == {class_name} else each for each in module.body]
    return module.with_changes(body=body)


def is_in_evaluation_mode(module: cst.Module, class_name: str) -> bool:
    """Whether the class puts itself into evaluation mode when it is made, at the end of its constructor."""
    return any(
        isinstance(method, cst.FunctionDef)
        and method.name.value == "__init__"
        and module.code_for_node(method.body.body[-1]).strip() == puts_into_evaluation(method)
        for node in module.body
        if isinstance(node, cst.ClassDef) and node.name.value == class_name
        for method in node.body.body
    )


def puts_into_evaluation(constructor: cst.FunctionDef) -> str:
    """The statement by which a constructor puts its module into evaluation mode, when it is judged."""
    return _EVALUATES.format(own=own_name(constructor) or "self")


def in_lines(node: Node) -> Node:
    """The class or function with each statement of its body in a line of its own."""
    if not isinstance(suite := node.body, cst.SimpleStatementSuite):
        return node
    lines = [cst.SimpleStatementLine([each.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]) for each in suite.body]
    return node.with_changes(body=cst.IndentedBlock(lines))


def _evaluating(node: cst.BaseStatement | cst.SimpleStatementLine) -> cst.BaseStatement | cst.SimpleStatementLine:
    if not isinstance(node, cst.ClassDef):
        return node
    node = in_lines(node)
    methods = list(node.body.body)
    for place, method in enumerate(methods):
        if isinstance(method, cst.FunctionDef) and method.name.value == "__init__":
            method = in_lines(method)
            last = cst.parse_statement(puts_into_evaluation(method))
            methods[place] = method.with_changes(body=method.body.with_changes(body=[*method.body.body, last]))
            break
    else:
        methods.append(cst.parse_statement(_CONSTRUCTOR.lstrip()))
    return node.with_changes(body=node.body.with_changes(body=methods))


def _given(file: UserFile) -> str:
    """The text of classes and functions that the example arguments may be made of, such as a configuration's class."""
    module = with_annotations_as_texts(cst.parse_module(file.source if file.is_kernelbench else _as_model(file)))
    makers = {*INPUT_FUNCTIONS, *CONSTRUCTOR_FUNCTIONS, _OWN_INPUTS}
    made_of = {
        name
        for statement in reachable(module, roots=makers)
        if isinstance(statement, cst.ClassDef | cst.FunctionDef)
        for name in defined_names(statement)
    }
    needed = reachable(module, roots=made_of - makers - {KERNELBENCH_CLASS})
    if any(KERNELBENCH_CLASS in defined_names(statement) for statement in needed):
        return ""  # no candidate is to have the reference within it
    return module.with_changes(header=[], body=[each for each in module.body if each in needed]).code


def _generators(file: UserFile) -> str:
    own_name = _OWN_INPUTS if file.inputs_function == INPUT_FUNCTIONS[0] else file.inputs_function
    text = _AS_ARGUMENTS.format(inputs=own_name)
    wanted = CONSTRUCTOR_FUNCTIONS[0]
    if file.constructor_function is None:
        return text + _NO_ARGUMENTS
    return text if file.constructor_function == wanted else f"{text}\n\n{wanted} = {file.constructor_function}\n"


def _shown(program: str, file: UserFile, facts: Survey) -> str:
    """The program with generators whose text tells the shapes, where that is possible."""
    module = _undecorated(cst.parse_module(program))
    is_told = all(map(_is_told, (*facts.inputs, *facts.named_inputs.values())))
    if not is_told or facts.constructor is None:
        return module.code + _generators(file)
    named = (f"{name!r}: {_told(form)}" for name, form in facts.named_inputs.items())
    inputs = f"{{{', '.join(named)}}}" if facts.named_inputs else f"[{', '.join(map(_told, facts.inputs))}]"
    generators = {*INPUT_FUNCTIONS, *CONSTRUCTOR_FUNCTIONS, _OWN_INPUTS}
    kept = [each for each in module.body if not defined_names(each) & generators]
    return module.with_changes(body=kept).code + _GENERATORS.format(inputs=inputs, constructor=list(facts.constructor))


def _is_told(form: Any) -> bool:
    """Whether it is that of a tensor or of a value that every draw has, and not of a container of forms."""
    match form:
        case ("value", float(value)):
            return math.isfinite(value)  # infinity has no literal
        case ("tensor" | "value", *_):
            return isinstance(form, tuple)
    return False


def _undecorated(module: cst.Module) -> cst.Module:
    """Without the decorators of Model: a candidate is not to enter itself in somebody's registry."""
    body = [
        each.with_changes(decorators=[])
        if isinstance(each, cst.ClassDef) and each.name.value == KERNELBENCH_CLASS
        else each
        for each in module.body
    ]
    return module.with_changes(body=body)


def _told(form: tuple[Any, ...]) -> str:
    """An expression for what has this form; what a tensor holds does not matter, since only its shape is read."""
    if form[0] == "value":
        return repr(form[1])
    _, dtype, shape, _ = form
    sizes = ", ".join(map(str, shape))
    if dtype.startswith("float"):
        return f"torch.randn({sizes or '()'})" + ("" if dtype == "float32" else f".to(torch.{dtype})")
    if dtype == "bool":
        return f"torch.rand({sizes or '()'}) > 0.5"
    return f"torch.randint(0, 2, {tuple(shape)!r})" + ("" if dtype == "int64" else f".to(torch.{dtype})")
