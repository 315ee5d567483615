"""Admission of new problems: what lies in the inbox of a problem folder moves beside the others, or into quarantine.

The inbox is laid out as the folder itself: levelN/NAME.py, and families in a catalogue.yaml. Nothing in it is ever
imported here. A file leaves the inbox last, so a killed admission is done again and comes to the same.
"""

import ast
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from tasks.errors import ProblemError, RetryableError
from tasks.judge.verdict import Status, Verdict
from tasks.problems.catalogue import CATALOGUE_NAME, INBOX, LEVEL_FOLDER, QUARANTINE, problem_paths
from tasks.problems.parsing import parsed
from tasks.problems.problem import Problem, Split

MAX_SOURCE_BYTES = 256 << 10
REASON_SUFFIX = ".reason.txt"
FIT = (Status.CORRECT, Status.UNSTABLE)
"""A reference whose times do not settle just now is a problem all the same."""

Examine = Callable[[Problem], Verdict]
"""Judges the reference as a candidate for itself, behind the walls that candidates are behind."""


class Fate(StrEnum):
    """What became of a file in the inbox."""

    ADMITTED = "admitted"
    QUARANTINED = "quarantined"
    WAITING = "waiting"  # where it is: it changed meanwhile, cannot be read or judged, or its family cannot be told


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """One file of the inbox."""

    name: str
    """Its path below the inbox."""
    fate: Fate
    reason: str = ""

    @property
    def headline(self) -> str:
        """The reason's first line; the rest is what a program said."""
        return self.reason.partition("\n")[0]


def has_arrivals(folder: Path) -> bool:
    """Whether anything lies in a problem folder's inbox."""
    return any(_waiting(folder / INBOX))


def admit_problems(folder: Path, examine: Examine, *, beside: Sequence[Path] = ()) -> Iterator[Arrival]:
    """Move every file of a problem folder's inbox to where it belongs, one after the other.

    Args:
        folder: a problem folder; one without an inbox has no arrivals.
        examine: called for what is a problem by its text, and new.
        beside: the other problem folders, whose problems must not come again either.

    Raises:
        ProblemError: if the folder's own catalogue cannot be read.
    """
    paths = list(_waiting(folder / INBOX))
    if not paths:
        return
    try:
        families = _entries(folder / INBOX / CATALOGUE_NAME)
    except ProblemError as error:
        # Admitted without its family, a problem that is to be held out would be trained on.
        yield from (Arrival(name=_name(folder, path), fate=Fate.WAITING, reason=str(error)) for path in paths)
        return
    known = {
        _tree(path.read_bytes()): path.relative_to(place).with_suffix("").as_posix()
        for place in (folder, *beside)
        for path in problem_paths(place)
    }
    for path in paths:
        try:
            yield _received(path, folder, families, known, examine, beside)
        except (RetryableError, OSError) as error:
            # One file that cannot be read, or on which a judge dies, must not stop the others night after night.
            yield Arrival(name=_name(folder, path), fate=Fate.WAITING, reason=f"{type(error).__name__}: {error}")


def _received(
    path: Path,
    folder: Path,
    families: dict[str, Any],
    known: dict[str, str],
    examine: Examine,
    beside: Sequence[Path],
) -> Arrival:
    name, content = _name(folder, path), b""
    try:
        content = _content(path)
        problem = _as_problem(name, content, families)
        if not _is_half_admitted(folder / name, content):
            _require_new(problem, [place / name for place in (folder, *beside)], known)
            _require_fit(examine(problem))
    except ProblemError as error:
        _quarantine(path, folder / QUARANTINE / name, content, str(error))
        return Arrival(name=name, fate=Fate.QUARANTINED, reason=str(error))
    if path.read_bytes() != content:
        return Arrival(name=name, fate=Fate.WAITING, reason="it changed while it was being looked at")
    _admit(path, folder, problem, content=content, entry=families.get(problem.problem_id))
    known[_tree(content)] = problem.problem_id
    return Arrival(name=name, fate=Fate.ADMITTED)


def _waiting(inbox: Path) -> Iterator[Path]:
    for path in sorted(inbox.rglob("*")):
        is_ours = path == inbox / CATALOGUE_NAME or any(part[0] == "." for part in path.relative_to(inbox).parts)
        if not is_ours and (path.is_symlink() or not path.is_dir()):
            yield path


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder / INBOX).as_posix()


def _content(path: Path) -> bytes:
    """The file's bytes; a link could name any file of this machine, and a pipe would be waited for."""
    if path.is_symlink() or not path.is_file():
        raise ProblemError("is a link or no file at all; put the text itself into the inbox")
    if path.suffix != ".py":
        raise ProblemError("is no Python file")
    if path.stat().st_size > MAX_SOURCE_BYTES:
        raise ProblemError(f"has {path.stat().st_size} bytes, {MAX_SOURCE_BYTES} at most")
    return path.read_bytes()


def _as_problem(name: str, content: bytes, families: dict[str, Any]) -> Problem:
    path = Path(name)
    level = LEVEL_FOLDER.fullmatch(path.parts[0]) if len(path.parts) > 1 else None
    if level is None:
        raise ProblemError(f"is in no level folder; put it into one such as {INBOX}/level1")
    problem_id = path.with_suffix("").as_posix()
    entry = families.get(problem_id, {"family": path.stem})
    family = entry.get("family") if isinstance(entry, dict) else None
    if not isinstance(family, str) or not family:
        raise ProblemError(f"{INBOX}/{CATALOGUE_NAME}: {problem_id!r} needs a family, but holds {entry!r}")
    try:
        source = content.decode("utf-8-sig")
        return Problem(problem_id=problem_id, level=int(level[1]), family=family, split=Split.TRAIN, source=source)
    except (UnicodeDecodeError, RecursionError, MemoryError) as error:
        raise ProblemError(f"cannot be read: {error or type(error).__name__}") from error


def _is_half_admitted(target: Path, content: bytes) -> bool:
    """Whether a kill came between the last two steps of its admission, or it was put into the inbox once more."""
    return target.is_file() and target.read_bytes() == content


def _require_new(problem: Problem, targets: Sequence[Path], known: dict[str, str]) -> None:
    if any(target.exists() for target in targets):
        raise ProblemError(f"another problem is called {problem.problem_id}; rename one")
    if double := known.get(_tree(problem.source.encode())):
        raise ProblemError(f"is {double} once more: they differ in comments and layout at most")


def _require_fit(verdict: Verdict) -> None:
    if verdict.status is Status.BAD_PROBLEM:
        raise ProblemError(verdict.detail)
    if verdict.status not in FIT:
        raise ProblemError(
            f"the reference itself, given as a candidate, does not pass: {verdict.status}\n{verdict.detail}"
        )


def _tree(content: bytes) -> str:
    """Equal for texts that differ in comments and layout alone."""
    try:
        return hashlib.sha256(ast.dump(parsed(content.decode("utf-8-sig"))).encode()).hexdigest()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return hashlib.sha256(content).hexdigest()  # of one that does not parse, load_problems says more


def _admit(path: Path, folder: Path, problem: Problem, *, content: bytes, entry: dict[str, str] | None) -> None:
    """What was looked at is what is written.

    The catalogue first: one without its file is refused, but a file without its entry might be trained on."""
    catalogue = folder / CATALOGUE_NAME
    if entry is not None and problem.problem_id not in (entries := _entries(catalogue)):
        _write(catalogue, _longer(catalogue, entries, {problem.problem_id: entry}).encode())
    target = folder / f"{problem.problem_id}.py"
    target.parent.mkdir(parents=True, exist_ok=True)
    _write(target, content)
    path.unlink()


def _longer(catalogue: Path, entries: dict[str, Any], added: dict[str, Any]) -> str:
    """The catalogue's text and a line more; written anew, without comments, where its form takes no line more."""
    text = catalogue.read_text(encoding="utf-8") if catalogue.exists() else ""
    line = yaml.safe_dump(added, sort_keys=False, default_flow_style=None, width=1000)
    longer = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}"
    with suppress(yaml.YAMLError):  # a text in flow style, or with an end mark, takes no more lines
        if yaml.safe_load(longer) == entries | added:
            return longer
    return yaml.safe_dump(entries | added, sort_keys=False, default_flow_style=None, width=1000)


def _quarantine(path: Path, target: Path, content: bytes, reason: str) -> None:
    """Under a name of its content, so that nothing that came before is replaced by something else."""
    tag = hashlib.sha256(content or os.fsencode(path.name)).hexdigest()[:8]
    target = target.with_name(f"{target.stem}.{tag}{target.suffix}")
    target.parent.mkdir(parents=True, exist_ok=True)
    _write(target.with_name(target.name + REASON_SUFFIX), f"{reason}\n".encode())
    path.replace(target)


def _entries(catalogue: Path) -> dict[str, Any]:
    if not catalogue.exists():
        return {}
    try:
        entries = yaml.safe_load(catalogue.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ProblemError(f"{catalogue} cannot be read: {error}") from error
    if not isinstance(entries, dict | None):
        raise ProblemError(f"{catalogue} must map problem ids to a family and a title, but holds {entries!r}")
    return entries or {}


def _write(path: Path, content: bytes) -> None:
    """The file is the old or the new one at any moment."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(content)
    partial.replace(path)
