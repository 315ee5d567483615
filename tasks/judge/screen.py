"""What can be said of a candidate without running it: a cheap pre-filter that never looks for forbidden words.

Text says nothing reliable about what a program does, so the screen refuses only what could not run as a candidate.
"""

import ast
import warnings
from dataclasses import dataclass

from tasks.judge import compilers
from tasks.judge.verdict import Status
from tasks.problems.parsing import parsed

CLASS_NAME = "ModelNew"
MAX_SOURCE_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Screened:
    """The screen's finding."""

    status: Status | None
    """REJECTED or COMPILE_ERROR, or None when the candidate may run."""
    detail: str = ""
    compilers: frozenset[str] = frozenset()
    """Those that are worth loading ahead of time; decides nothing else."""


def screen(source: str) -> Screened:
    """Whether the text could be a candidate at all."""
    try:
        num_bytes = len(source.encode())
    except UnicodeEncodeError as error:
        return Screened(status=Status.COMPILE_ERROR, detail=f"the source is not text: {error}")
    if num_bytes > MAX_SOURCE_BYTES:
        return Screened(status=Status.REJECTED, detail=f"the source has {num_bytes} bytes, {MAX_SOURCE_BYTES} at most")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parsed(source.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return Screened(
            status=Status.COMPILE_ERROR, detail=f"the source does not parse: {str(error) or type(error).__name__}"
        )
    if not _binds(tree, CLASS_NAME):
        return Screened(status=Status.REJECTED, detail=f"nothing defines {CLASS_NAME}")
    if any(_is_plain_module(node) for node in ast.walk(tree)) and not _mentions_forward(tree):
        return Screened(status=Status.REJECTED, detail=f"{CLASS_NAME} has no forward")
    return Screened(status=None, compilers=compilers.mentioned(source))


def _binds(tree: ast.AST, name: str) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.alias) and (node.asname or node.name) == name:
            return True
        if isinstance(node, ast.Constant) and node.value == name:  # setattr or globals()[...]
            return True
        if isinstance(node, ast.Name) and node.id == "exec":  # whose text may do anything
            return True
    return False


def _is_plain_module(node: ast.AST) -> bool:
    """Whether this is a class of the right name that inherits from nn.Module alone, so that it needs a forward."""
    if not isinstance(node, ast.ClassDef) or node.name != CLASS_NAME:
        return False
    return len(node.bases) == 1 and _last_name(node.bases[0]) == "Module"


def _mentions_forward(tree: ast.AST) -> bool:
    return any(
        (isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and inner.name in ("forward", "__call__"))
        or (isinstance(inner, ast.Name) and inner.id == "forward")
        or (isinstance(inner, ast.Attribute) and inner.attr == "forward")
        or (isinstance(inner, ast.Constant) and inner.value == "forward")
        for inner in ast.walk(tree)
    )


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
