"""A user's file: which class of it is meant, and where its example inputs come from. Nothing here runs it."""

import ast
import builtins
import importlib.util
import re
import symtable
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping
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
        class_name: which one; None where the file has only one, or one that no other of it uses.

    Raises:
        ProblemError: if the file cannot be read or does not parse, the class or its example inputs are missing, or
            several classes could be meant.
    """
    source = _read(path)
    try:
        tree = ast.parse(source)
        table = symtable.symtable(source, str(path), "exec")  # which refuses more
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ProblemError(f"{path} does not parse: {error}") from None
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    chosen = _chosen_class(tree, table, path, class_name)
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


def _read(path: Path) -> str:
    try:
        text = importlib.util.decode_source(path.read_bytes()).removeprefix("\ufeff")
    except (OSError, ValueError, SyntaxError) as error:
        raise ProblemError(f"{path} cannot be read: {error}") from error
    return _COOKIE.sub(r"\1utf-8", text)  # as which all that is made of it is written


@dataclass(frozen=True, kw_only=True, slots=True)
class _Classes:
    """Classes of a file, as far as its text tells."""

    modules: Mapping[str, ast.ClassDef]
    """By having a forward, or by inheriting from torch or from another of these."""
    heirs: Mapping[str, ast.ClassDef]
    """Others that may be modules, since what they inherit from is in another file."""
    with_forward: Collection[str]
    """Those whose forward is in the file, in their own text or in that of a class that they inherit from."""

    @classmethod
    def of(cls, tree: ast.Module) -> "_Classes":
        origins = _origins(tree)
        modules, heirs = dict[str, ast.ClassDef](), dict[str, ast.ClassDef]()
        with_forward, others = set[str](), set[str]()
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                bases = [_dotted(base) for base in node.bases]
                roots = {base.partition(".")[0] for base in bases}
                if _has_forward(node) or roots & with_forward:
                    with_forward.add(node.name)
                if (
                    node.name in with_forward
                    or roots & {*modules}
                    or any(_is_of_torch(each, origins) for each in bases)
                ):
                    modules[node.name] = node
                elif any(root not in others and not _is_of_python(root, origins) for root in roots):
                    heirs[node.name] = node
                else:
                    others.add(node.name)
        return cls(modules=modules, heirs=heirs, with_forward=with_forward)


def _chosen_class(tree: ast.Module, table: symtable.SymbolTable, path: Path, class_name: str | None) -> ast.ClassDef:
    classes = _Classes.of(tree)
    either = {**classes.heirs, **classes.modules}
    wanted = class_name or KERNELBENCH_CLASS
    if wanted in either:
        fitting = [either[wanted]]
    elif class_name is None:
        fitting = _in_question(classes, _needs(tree, table))
    else:
        fitting = []
    if not fitting:
        has = ", ".join(classes.modules) or "no class with a forward"
        raise ProblemError(f"{path} defines no {f'module {class_name}' if class_name else 'module'}; it has: {has}")
    if len(fitting) > 1:
        names = ", ".join(each.name for each in fitting)
        raise ProblemError(f"{path} has several modules: {names}; say which, as in {path}:{fitting[-1].name}")
    (chosen,) = fitting
    if chosen.name not in classes.with_forward:
        raise ProblemError(
            f"{chosen.name} of {path} has no forward of its own, and only what stands there is made faster: add one "
            f"with the steps of the inherited one (return super().forward(x) would hide them)"
        )
    return chosen


def _in_question(classes: _Classes, needs: Mapping[str, Collection[str]]) -> list[ast.ClassDef]:
    """Classes that may be meant where none is named: modules that no other uses, those with a forward before others."""
    names = [*(classes.modules or classes.heirs)]
    unused = [name for name in names if not any(name in needs[other] for other in names if other != name)] or names
    # What parts call may make all modules, so that what uses another directly goes first.
    reached = {name: _reached(name, needs) for name in unused}
    top = [name for name in unused if not any(name in reached[other] for other in unused if other != name)] or unused
    fitting = [name for name in top if name in classes.with_forward] or top
    return [{**classes.heirs, **classes.modules}[name] for name in fitting]


def _needs(tree: ast.Module, table: symtable.SymbolTable) -> Mapping[str, Collection[str]]:
    """Names of the file that each class, function and variable of it is made of or uses when it is called."""
    needs = defaultdict[str, set[str]](set)
    for scope in table.get_children():
        needs[scope.get_name()] |= _global_names(scope)
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            bound, parts = {node.name}, [each for each in ast.iter_child_nodes(node) if each not in node.body]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            bound, parts = _names(node, ast.Store), [node]
        else:
            continue
        for name in bound:
            needs[name].update(*(_names(part, ast.Load) for part in parts))
    return needs


def _reached(name: str, needs: Mapping[str, Collection[str]]) -> set[str]:
    """What it needs, and what that needs in turn."""
    found, waiting = set[str](), [name]
    while waiting:
        new = {*needs.get(waiting.pop(), ())} - found
        found |= new
        waiting += new
    return found


def _global_names(scope: symtable.SymbolTable) -> set[str]:
    """Names of the file that something in the scope uses; its own variables may be called the same."""
    own = {each.get_name() for each in scope.get_symbols() if each.is_global() and each.is_referenced()}
    return own.union(*map(_global_names, scope.get_children()))


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, context)}


def _has_forward(node: ast.ClassDef) -> bool:
    """Whether the class's own text gives it a forward, in whatever way."""
    waiting: list[ast.AST] = [*node.body]
    while waiting:
        match waiting.pop():
            case ast.FunctionDef(name="forward") | ast.Name(id="forward", ctx=ast.Store()):
                return True
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue  # its variables are its own
            case other:
                waiting += ast.iter_child_nodes(other)
    return False


def _origins(tree: ast.Module) -> Mapping[str, str]:
    """What each imported name stands for; what is relative begins with a dot."""
    origins: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            origins |= {each.asname: each.name for each in node.names if each.asname}
        elif isinstance(node, ast.ImportFrom):
            origin = f"{'.' * node.level}{node.module or ''}"
            origins |= {each.asname or each.name: f"{origin}.{each.name}" for each in node.names}
    return origins


def _dotted(base: ast.expr) -> str:
    return ast.unparse(base.value if isinstance(base, ast.Subscript) else base)


def _is_of_torch(base: str, origins: Mapping[str, str]) -> bool:
    root, dot, rest = base.partition(".")
    origin = origins.get(root, root) + dot + rest
    return origin.startswith("torch.nn.") or origin.rpartition(".")[2] == "Module"


def _is_of_python(root: str, origins: Mapping[str, str]) -> bool:
    origin = origins.get(root, root)
    return hasattr(builtins, origin) or origin.partition(".")[0] in sys.stdlib_module_names


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
