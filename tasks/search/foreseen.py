"""Why a user's file gets no drop-in, whatever is found, as far as that is known before anything is searched."""

import ast
import re
from dataclasses import replace

from tasks.errors import ProblemError, RecordError
from tasks.search.drop_in import ENTRY, ORIGIN, DropIn, drop_in
from tasks.search.drop_in_runtime import free_name
from tasks.search.names import Said, lines_of, text_of
from tasks.search.survey import Survey, survey
from tasks.search.user_file import UserFile
from tasks.variants.candidate import Candidate
from tasks.variants.shortening import shortened

STATEMENT_CHARS = 80
REASON_CHARS = 160
_LEAST = f"class {ENTRY}:\n    pass\n"
_STAND_IN = re.compile(r"\b_Described\d*\b")
"""What goes by the name of the user's class while it is described; the user need not know."""
_PLACES = """

class {kind}(__import__("torch").nn.Module):
    def forward(self, places):
        return places


def {function}():
    from tasks.judge.model_state import constructor_arguments

    positional, named = constructor_arguments({returned}, {name})
    module = {name}(*positional, **named)
    tensors = [*module.named_parameters(), *module.named_buffers()]
    return [", ".join(f"{{name}} on {{each.device.type}}" for name, each in tensors if each.device.type != "cpu")]
"""


def require_name_of_its_own(file: UserFile) -> None:
    """Refuse a file that gives the name of its class to something else too: nothing could then stand in its place.

    What is nested too deeply to be told is let through.

    Raises:
        ProblemError: if it does.
    """
    try:
        given = _given_otherwise(file)
    except RecursionError:
        return
    if given:
        line, text, own_line = given
        name = file.class_name
        raise ProblemError(
            f"{file.path}: line {line} gives the name {name} to {text}, but a faster class can only stand in the place "
            f"of the one in line {own_line} if nothing else is called {name}: call that otherwise"
        )


def obstacle(file: UserFile, facts: Survey) -> str | None:
    """Why no candidate can be made a drop-in for the file, in a line; None if nothing is known.

    What is refused of a candidate that does nothing is refused of all. The file runs once more for this, and again
    where it is refused for what its module is.
    """
    try:
        _least_drop_in(file, facts)
    except RecordError as error:
        is_of_the_module = not isinstance(error.__cause__, ProblemError | RecursionError)
        if is_of_the_module and (places := _elsewhere(file)):
            return f"{file.class_name} makes {places}: make all parameters and buffers on the default device"
        return _in_a_line(str(error), file)
    return None


def fast_once(file: UserFile, facts: Survey) -> str | None:
    """Why every drop-in of the file would be fast for one call only, in a line; None if nothing is known.

    Nothing runs once more for a file that `obstacle` was asked of.
    """
    try:
        changed = _least_drop_in(file, facts).changed_by_a_call
    except RecordError:
        return None
    if not changed:
        return None
    return _STAND_IN.sub(
        file.class_name,
        f"a call of {file.class_name} changes {changed}, after which it is not what was judged: let it keep that in "
        f"buffers that are there from the beginning, or in attributes of its own that its constructor does not set",
    )


def _least_drop_in(file: UserFile, facts: Survey) -> DropIn:
    candidate = Candidate(problem_id=file.path.stem, source=_LEAST, origin=ORIGIN)
    return drop_in(file, facts, candidate, problem_id=file.path.stem)


def _given_otherwise(file: UserFile) -> tuple[int, str, int] | None:
    """The line and the text of what else gets the name of the class, and the line of the class."""
    name, lines = file.class_name, lines_of(file.source)
    statements = ast.parse(file.source).body
    own = next(each for each in reversed(statements) if isinstance(each, ast.ClassDef) and each.name == name)
    for statement in statements:
        if statement is not own:
            below = [f"class {name}: pass"] if statement.lineno < own.lineno else []
            said = Said.by("\n".join([text_of(statement, lines), *below]))
            if said.times[name] > len(below):
                giving = [each for each in ast.walk(statement) if isinstance(each, ast.stmt) and _gives(each, name)]
                innermost = (giving or [statement])[-1]
                text = text_of(innermost, lines).partition("\n")[0].removesuffix(":")
                return innermost.lineno, shortened(text, STATEMENT_CHARS), own.lineno
    return None


def _elsewhere(file: UserFile) -> str | None:
    """Weights that its constructor makes on another device than others, and on which; None if that is not known."""
    said = Said.by(file.source)
    taken = {*said.bound, *said.used}
    kind, function = free_name("_Places", taken), free_name("_places", taken)
    returned = f"{file.constructor_function}()" if file.constructor_function else "[]"
    added = _PLACES.format(kind=kind, function=function, returned=returned, name=file.class_name)
    asked = replace(
        file, source=file.source + added, class_name=kind, inputs_function=function, constructor_function=None
    )
    try:
        ((_, places),) = survey(asked).inputs
    except ProblemError:
        return None
    return str(places)


def _in_a_line(reason: str, file: UserFile) -> str:
    """The reason in terms of the file, and of an error's trace only what the error says."""
    first, *others = [line.strip() for line in _STAND_IN.sub(file.class_name, reason).splitlines() if line.strip()]
    if not others:
        return first
    return f"{first.partition(f': {file.path}: ')[0]}: {shortened(others[-1], REASON_CHARS)}"


def _gives(statement: ast.stmt, name: str) -> bool:
    """Whether something in it gets the name."""
    return any(
        name in (getattr(each, "name", None), getattr(each, "asname", None))
        or (isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load))
        for each in ast.walk(statement)
    )
