"""What a file needs from its own folders, as text that goes with it: behind the judge's walls there are no folders.

Modules that it imports from beside itself, and files that its text names.
"""

import ast
import base64
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

from tasks.errors import ProblemError
from tasks.search.user_file import UserFile

MAX_BYTES = 512 << 10
"""Of everything, compressed: the judge takes programs of a mebibyte."""
MAX_FILE_BYTES = 8 << 20
LONGEST_NAME = 200

_UNPACK = """
def _unpack(here, package, packed=%(packed)r):  # a default is not in the trace of an error
    import base64, json, os, sys, tempfile, zlib

    root = tempfile.mkdtemp()
    for name, content in json.loads(zlib.decompress(base64.b85decode(packed))).items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b85decode(content))
    folder = os.path.join(root, os.path.dirname(here))
    os.makedirs(folder, exist_ok=True)  # though no file in it may be needed
    sys.path[:0] = [folder, root]
    os.chdir(folder)
    globals().update(__file__=os.path.join(root, here), __package__=package or None)


_unpack(%(here)r, %(package)r)
"""


def bundle(file: UserFile) -> str:
    """Statements that lay the files out again and let the program that follows find them; empty if it needs none.

    Raises:
        ProblemError: if they are too large to go with a program.
    """
    root, package = file.package
    found = sorted(_needed(file.path, file.source, root, seen=set()))  # with the file itself, where they import it
    if not found:
        return ""
    too_large = [path for path in found if path.stat().st_size > MAX_FILE_BYTES]
    contents = {
        str(path.relative_to(root)): base64.b85encode(path.read_bytes()).decode()
        for path in found
        if path not in too_large
    }
    packed = base64.b85encode(zlib.compress(json.dumps(contents).encode(), 9)).decode()
    if too_large or len(packed) > MAX_BYTES:
        names = ", ".join(str(path.relative_to(root)) for path in too_large or found)
        raise ProblemError(
            f"{file.path} uses {names}: more than {MAX_BYTES >> 10} KiB compressed, which is too much to judge with; "
            f"let example_inputs and the constructor make such data instead of reading it"
        )
    return _UNPACK % {"packed": packed, "here": str(file.path.relative_to(root)), "package": package}


def _needed(path: Path, source: str, root: Path, *, seen: set[Path]) -> Iterator[Path]:
    """Files beside the path that its text imports or names, and what those need in turn."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for found in [*_imported(tree, path, root), *_named(tree, path)]:
        if found in seen:
            continue
        seen.add(found)
        yield found
        if found.suffix == ".py":
            yield from _needed(found, found.read_text(errors="replace"), root, seen=seen)


def _imported(tree: ast.Module, path: Path, root: Path) -> Iterator[Path]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _module_files(alias.name, (path.parent, root))
        elif isinstance(node, ast.ImportFrom):
            folders = [path.parent, root]
            if node.level:
                folders = [path.parents[node.level - 1]]
                yield from _packages_above(folders[0], root)
            yield from _module_files(node.module or "", folders)
            for alias in node.names:
                yield from _module_files(f"{node.module}.{alias.name}" if node.module else alias.name, folders)


def _module_files(dotted: str, folders: tuple[Path, ...] | list[Path]) -> Iterator[Path]:
    """The file of a module and those of the packages that it is in, where they lie in one of the folders."""
    parts = [part for part in dotted.split(".") if part]
    for folder in folders:
        for count in range(1, len(parts) + 1):
            base = folder.joinpath(*parts[:count])
            for each in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
                if each.is_file():
                    yield each


def _packages_above(folder: Path, root: Path) -> Iterator[Path]:
    while folder != root and root in folder.parents:
        yield folder / "__init__.py"
        folder = folder.parent


def _named(tree: ast.Module, path: Path) -> Iterator[Path]:
    """Files, or all files of folders, that a string of the program names relative to its own folder."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        name = node.value
        if not 0 < len(name) <= LONGEST_NAME or name.startswith(("/", "~", ".")) or "\n" in name or "\0" in name:
            continue
        found = path.parent / name
        if found.is_file():
            yield found
        elif found.is_dir() and found != path.parent:
            yield from (each for each in sorted(found.rglob("*")) if each.is_file() and each.suffix != ".pyc")
