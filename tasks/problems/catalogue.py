"""Reads the problem folders and draws the train / held-out line; everything wrong with them is said at once."""

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tasks.errors import ProblemError
from tasks.params import ProblemsParams
from tasks.problems.problem import Problem, Split

CATALOGUE_NAME = "catalogue.yaml"
INBOX, QUARANTINE = "inbox", "quarantine"
"""Folders within a problem folder whose files are no problems: not yet, or not at all."""
LEVEL_FOLDER = re.compile(r"level([1-9]\d*)")


def load_problems(params: ProblemsParams) -> dict[str, Problem]:
    """Every problem of the folders, or as many as the limit lets through, by id and in order of it.

    A problem's family stands in its folder's catalogue.yaml; without an entry the problem is a family of its own.

    Raises:
        ProblemError: listing every mistake in every folder, each with its path.
    """
    reading = _Reading(held_out_families=frozenset(params.held_out_families))
    for folder in params.folders:
        reading.read_folder(Path(folder))
    reading.check_held_out_families()
    if reading.mistakes:
        lines = [f"  {mistake}" for mistake in reading.mistakes]
        raise ProblemError("\n".join([f"the problem folders hold {len(lines)} mistake(s):", *lines]))
    problems = list(reading.problems.values())
    if params.limit is not None:
        problems = _spread(problems, params.limit)
    return {problem.problem_id: problem for problem in sorted(problems, key=lambda problem: problem.problem_id)}


def problem_paths(folder: Path) -> list[Path]:
    """The files of a problem folder that are problems."""
    return sorted(p for p in folder.rglob("*.py") if p.relative_to(folder).parts[0] not in (INBOX, QUARANTINE))


@dataclass(kw_only=True, slots=True)
class _Reading:
    """What was read so far, and what was wrong with it."""

    held_out_families: frozenset[str]
    problems: dict[str, Problem] = field(default_factory=dict)
    paths: dict[str, Path] = field(default_factory=dict)
    families: set[str] = field(default_factory=set)
    """Families of all files, refused ones included: a broken file must not make its family unknown as well."""
    mistakes: list[str] = field(default_factory=list)

    def read_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            self.mistakes.append(f"{folder}: no such folder; correct problems.folders in params.yaml")
            return
        paths = problem_paths(folder)
        if not paths:
            self.mistakes.append(f"{folder}: holds no problem; it needs files such as level1/NAME.py")
        families = self._read_families(folder, known={_problem_id(folder, path) for path in paths})
        for path in paths:
            self._read_problem(folder, path, families)

    def check_held_out_families(self) -> None:
        for family in sorted(self.held_out_families - self.families):
            known = ", ".join(sorted(self.families)) or "none"
            self.mistakes.append(f"problems.held_out_families: no family {family!r}; there are: {known}")

    def _read_families(self, folder: Path, *, known: set[str]) -> dict[str, str]:
        """Family by problem id, as far as the folder's catalogue can be made out."""
        path = folder / CATALOGUE_NAME
        if not path.exists():
            return {}
        try:
            entries = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            self.mistakes.append(f"{path}: cannot be read: {error}")
            return {}
        if not isinstance(entries, dict):
            self.mistakes.append(f"{path}: must map problem ids to a family and a title, but holds {entries!r}")
            return {}
        families = {}
        for problem_id, entry in entries.items():
            family = entry.get("family") if isinstance(entry, dict) else None
            if problem_id not in known:
                self.mistakes.append(f"{path}: {problem_id!r} has no file {folder / f'{problem_id}.py'}")
            elif not isinstance(family, str) or not family:
                self.mistakes.append(f"{path}: {problem_id!r} needs a family, but holds {entry!r}")
            else:
                families[problem_id] = family
        return families

    def _read_problem(self, folder: Path, path: Path, families: dict[str, str]) -> None:
        problem_id = _problem_id(folder, path)
        family = families.get(problem_id, path.stem)
        self.families.add(family)
        level = LEVEL_FOLDER.fullmatch(path.relative_to(folder).parts[0])
        if level is None:
            self.mistakes.append(f"{path}: is in no level folder; move it to one such as {folder / 'level1'}")
            return
        if problem_id in self.paths:
            self.mistakes.append(f"{path}: the id {problem_id!r} is taken by {self.paths[problem_id]}; rename one")
            return
        self.paths[problem_id] = path
        try:
            self.problems[problem_id] = Problem(
                problem_id=problem_id,
                level=int(level[1]),
                family=family,
                split=Split.HELD_OUT if family in self.held_out_families else Split.TRAIN,
                source=path.read_text(encoding="utf-8-sig"),
            )
        except (OSError, UnicodeDecodeError, ProblemError) as error:
            self.mistakes.append(f"{path}: {error}")


def _problem_id(folder: Path, path: Path) -> str:
    return path.relative_to(folder).with_suffix("").as_posix()


def _spread(problems: list[Problem], limit: int) -> list[Problem]:
    """At most so many, both splits in proportion and present where the limit allows, levels and families in turn."""
    held_out = [problem for problem in problems if problem.split is Split.HELD_OUT]
    train = [problem for problem in problems if problem.split is Split.TRAIN]
    limit = min(limit, len(problems))
    quota = round(limit * len(held_out) / len(problems))
    quota = max(quota, 1) if held_out and limit > 1 else quota
    quota = min(quota, limit - 1) if train else quota
    return [*_in_turn(train, limit - quota), *_in_turn(held_out, quota)]


def _in_turn(problems: list[Problem], count: int) -> list[Problem]:
    left = list(problems)
    levels: Counter[int] = Counter()
    families: Counter[str] = Counter()
    for _ in range(count):
        problem = min(left, key=lambda p: (levels[p.level], families[p.family], p.problem_id))
        left.remove(problem)
        levels[problem.level] += 1
        families[problem.family] += 1
    return [problem for problem in problems if problem not in left]
