"""A user's file: which class of it is meant, and where its example inputs come from. Nothing here runs it."""

import ast
import importlib.util
import re
import symtable
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.errors import ProblemError

INPUT_FUNCTIONS = ("get_inputs", "example_inputs")
CONSTRUCTOR_FUNCTIONS = ("get_init_inputs", "example_init")
KERNELBENCH_CLASS = "Model"
_COOKIE = re.compile(r"^((?:[ \t\f]*(?:#.*)?\n)?[ \t\f]*#.*?coding[:=][ \t]*)[-\w.]+")
"""What says how a file is encoded: a comment in its first line, or in the second below nothing but a comment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UserFile:
    """One class of a file, and the functions that say how to make and to call it."""

    path: Path
    source: str
    """Where the file says how it is encoded, this says UTF-8 instead."""
    class_name: str
    inputs_function: str
    constructor_function: str | None
    """None where the constructor takes no arguments."""

    @property
    def is_kernelbench(self) -> bool:
        """Whether the file is a problem as it stands; its class is then judged in the mode it is constructed in."""
        return self.class_name == KERNELBENCH_CLASS and self.inputs_function == INPUT_FUNCTIONS[0]

    @property
    def package(self) -> tuple[Path, str]:
        """The folder that imports start from, and the dotted name of the package that the file is in, if any."""
        folder, parts = self.path.parent, list[str]()
        while (folder / "__init__.py").exists():
            parts.insert(0, folder.name)
            folder = folder.parent
        return folder, ".".join(parts)


def read_user_file(path: Path, class_name: str | None = None) -> UserFile:
    """The file and the class in it that is to be made faster.

    Args:
        class_name: which one; None where the file has only one, or one that no other class of it uses.

    Raises:
        ProblemError: if the file cannot be read or does not parse, the class or its example inputs are missing, or
            several classes could be meant.
    """
    source = _read(path)
    try:
        tree = ast.parse(source)
        symtable.symtable(source, str(path), "exec")  # which says more
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ProblemError(f"{path} does not parse: {error}") from None
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    chosen = _chosen_class(tree, path, class_name)
    inputs = next((name for name in INPUT_FUNCTIONS if name in functions), None)
    if inputs is None:
        raise ProblemError(
            f"{path} has no {' or '.join(INPUT_FUNCTIONS)}; add a function that returns what {chosen.name} is called "
            f"with, such as: def example_inputs(): return [torch.randn(8, 64)]"
        )
    constructor = next((name for name in CONSTRUCTOR_FUNCTIONS if name in functions), None)
    if constructor is None and (required := _required_arguments(chosen)):
        raise ProblemError(
            f"{chosen.name} of {path} needs the arguments {', '.join(required)}; add a function that returns them, "
            f"such as: def {CONSTRUCTOR_FUNCTIONS[1]}(): return {{{', '.join(f'{name!r}: ...' for name in required)}}}"
        )
    return UserFile(
        path=path.resolve(),
        source=source,
        class_name=chosen.name,
        inputs_function=inputs,
        constructor_function=constructor,
    )


def module_classes(tree: ast.Module) -> list[ast.ClassDef]:
    """Classes of the file that are modules, as far as their text tells: by their bases, or by having a forward."""
    found: dict[str, ast.ClassDef] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            has_forward = any(isinstance(each, ast.FunctionDef) and each.name == "forward" for each in node.body)
            if has_forward or bases & {"Module", *found}:
                found[node.name] = node
    return list(found.values())


def _read(path: Path) -> str:
    try:
        text = importlib.util.decode_source(path.read_bytes()).removeprefix("\ufeff")
    except (OSError, ValueError, SyntaxError) as error:
        raise ProblemError(f"{path} cannot be read: {error}") from error
    return _COOKIE.sub(r"\1utf-8", text)  # as which all that is made of it is written


def _chosen_class(tree: ast.Module, path: Path, class_name: str | None) -> ast.ClassDef:
    classes = module_classes(tree)
    names = ", ".join(each.name for each in classes)
    if class_name is not None:
        fitting = [each for each in classes if each.name == class_name]
    else:
        named_model = [each for each in classes if each.name == KERNELBENCH_CLASS]
        fitting = named_model or (classes if len(classes) == 1 else _not_used_by_others(classes))
    if not classes or (class_name is not None and not fitting):
        wanted = f"module {class_name}" if class_name else "module"
        raise ProblemError(f"{path} defines no {wanted}; it has: {names or 'no class with a forward'}")
    if len(fitting) != 1:
        raise ProblemError(f"{path} has several modules: {names}; say which, as in {path}:{classes[-1].name}")
    return fitting[-1]


def _not_used_by_others(classes: Sequence[ast.ClassDef]) -> list[ast.ClassDef]:
    def uses(node: ast.AST) -> set[str]:
        return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}

    return [each for each in classes if not any(each.name in uses(node) for node in classes if node is not each)]


def _required_arguments(node: ast.ClassDef) -> list[str]:
    """Arguments of the class's own constructor that have no default."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            arguments = each.args
            positional = [argument.arg for argument in arguments.posonlyargs + arguments.args][1:]
            named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            return positional[: len(positional) - len(arguments.defaults)] + [
                argument.arg for argument, default in named if default is None
            ]
    return []
