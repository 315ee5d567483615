"""Why a user's file gets no drop-in, whatever is found, as far as that is known before anything is searched."""

import ast

from tasks.errors import ProblemError, RecordError
from tasks.search.drop_in import ENTRY, ORIGIN, drop_in
from tasks.search.names import Said
from tasks.search.survey import Survey
from tasks.search.user_file import UserFile
from tasks.variants.candidate import Candidate

STATEMENT_CHARS = 80
_LEAST = f"class {ENTRY}:\n    pass\n"


def require_name_of_its_own(file: UserFile) -> None:
    """Refuse a file that gives the name of its class to something else too: nothing could then stand in its place.

    Raises:
        ProblemError: if it does.
    """
    name = file.class_name
    if Said.by(file.source).times[name] <= 1:
        return
    statements = ast.parse(file.source).body
    own = next(each for each in reversed(statements) if isinstance(each, ast.ClassDef) and each.name == name)
    binding = [each for each in statements if each is not own and Said.by(ast.unparse(each)).times[name]]
    giving = [each for each in ast.walk(binding[0]) if isinstance(each, ast.stmt) and _gives(each, name)]
    innermost = (giving or binding)[-1]
    text = ast.unparse(innermost).partition("\n")[0].removesuffix(":")[:STATEMENT_CHARS]
    raise ProblemError(
        f"{file.path}: line {innermost.lineno} gives the name {name} to {text}, but a faster class can only stand in "
        f"the place of the one in line {own.lineno} if nothing else is called {name}: call that otherwise"
    )


def obstacle(file: UserFile, facts: Survey) -> str | None:
    """Why no candidate can be made a drop-in for the file, which runs once more for this; None if nothing is known.

    What is refused of a candidate that does nothing is refused of all.
    """
    candidate = Candidate(problem_id=file.path.stem, source=_LEAST, origin=ORIGIN)
    try:
        drop_in(file, facts, candidate, problem_id=file.path.stem)
    except RecordError as error:
        return str(error)
    return None


def _gives(statement: ast.stmt, name: str) -> bool:
    """Whether something in it gets the name."""
    return any(
        name in (getattr(each, "name", None), getattr(each, "asname", None))
        or (isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load))
        for each in ast.walk(statement)
    )
