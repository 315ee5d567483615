"""Whether a candidate's constructor makes what the user's does: then nobody has to run it."""

from collections.abc import Mapping, Sequence
from typing import Any

import libcst as cst

from tasks.search.texts import puts_into_evaluation
from tasks.variants.names import defined_names, substituted, used_names, walk

_CALLS_THE_PARENTS = "super().__init__(*arguments, **options)"


def is_made_alike(
    candidate: cst.ClassDef | None,
    own: cst.ClassDef | None,
    new_names: Mapping[str, str],
    *,
    is_put_into_evaluation: bool,
) -> bool:
    """Whether it is the same text, as is all of the class that it may use, and no name in it was given to another.

    Args:
        candidate: laid out as the user's class, which it stands for; None if it is no class.
        new_names: what the candidate's names are called beside the user's.
        is_put_into_evaluation: the constructor may end so, since judging it needs that.
    """
    if candidate is None or own is None:
        return False
    own = substituted(own, {own.name.value: candidate.name.value})
    parts = [_parts(each, is_put_into_evaluation=is_put_into_evaluation) for each in (candidate, own)]
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
    heads = [[*map(_text, (*each.bases, *each.keywords))] for each in (candidate, own)]
    texts = [[[*map(_text, part.get(name, ()))] for name in needed] for part in parts]
    return heads[0] == heads[1] and texts[0] == texts[1] and used & new_names.keys() <= {candidate.name.value}


def _parts(statement: cst.ClassDef, *, is_put_into_evaluation: bool) -> dict[str, Sequence[cst.CSTNode]]:
    """The statements of a class by the names that they bind."""
    parts: dict[str, list[cst.CSTNode]] = {}
    for part in statement.body.body if isinstance(statement.body, cst.IndentedBlock) else ():
        bare: Any = part.with_changes(leading_lines=[])
        is_constructor = isinstance(bare, cst.FunctionDef) and bare.name.value == "__init__"
        if is_put_into_evaluation and is_constructor and isinstance(bare.body, cst.IndentedBlock):
            lines = [each for each in bare.body.body if _text(each) != puts_into_evaluation(bare)]
            if [*map(_text, lines)] == [_CALLS_THE_PARENTS]:
                continue
            bare = bare.with_changes(body=bare.body.with_changes(body=lines))
        for name in defined_names(bare) or {"__doc__"}:
            parts.setdefault(name, []).append(bare)
    return {name: tuple(statements) for name, statements in parts.items()}


def _text(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node).strip()
