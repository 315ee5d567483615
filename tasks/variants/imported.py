"""The provider that reads: kernels that others have written and released, with what they claim for them.

Reads JSON lines as CUDA-L1 released them, one line a problem, and plain ones with "problem_id" and "source", as the
stages here write candidates. A line that is neither, or for no problem at hand, is told of and left out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks.problems.problem import Problem
from tasks.problems.problem_sets import reference_hash
from tasks.problems.sources import level_and_number, read_json_lines
from tasks.variants.candidate import Candidate

RELEASED = "cuda-l1-released"
CLAIM_COLUMNS = {
    "score_default": "eager",
    "score_torch_compile_default": "compile",
    "score_torch_compile_reduce_overhead": "compile_reduce_overhead",
    "score_cuda_graph": "cuda_graph",
    "claimed_speedup": "eager",
}
"""Columns with a claimed speedup, and the baseline that it is claimed over."""
MOST_CLAIMED = 1e6
"""No program is a million times as fast as another that does the same: what claims more is a mistake."""
WITHHELD = "None"
"""As text, what CUDA-L1 writes for some of what it withheld."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedKernel:
    """One line of a file: a kernel, a claim, or both."""

    problem_id: str
    origin: str
    candidate: Candidate | None = None
    """None where the file names no code, though it may claim a speedup."""
    device: str = ""
    """Where the claim was measured, in the file's own words; empty when it does not say."""
    claims: Mapping[str, float] = field(default_factory=dict)
    """Baseline to the claimed speedup over it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Import:
    """What was read from one file."""

    kernels: tuple[ImportedKernel, ...]
    mistakes: tuple[str, ...]
    """What was left out, each with its place and the reason."""
    impossible_claims: tuple[str, ...] = ()
    """Claims that cannot be speedups, each with its place: left out, and the kernels that they come with are not."""

    @property
    def candidates(self) -> list[Candidate]:
        return [kernel.candidate for kernel in self.kernels if kernel.candidate is not None]


class ImportProvider:
    """Candidates from an import, as from any other provider."""

    def __init__(self, imported: Import, *, name: str) -> None:
        self.name = name
        self._by_problem: dict[str, list[Candidate]] = defaultdict(list)
        for candidate in imported.candidates:
            self._by_problem[candidate.problem_id].append(candidate)

    def candidates(self, problem: Problem, *, seed: int) -> Iterator[Candidate]:
        """The problem's candidates in the order of the file, whatever the seed."""
        yield from dict.fromkeys(self._by_problem[problem.problem_id])


class _LeftOutError(Exception):
    """A line of which nothing is used; says why."""


def read_candidates(path: Path, problems: Mapping[str, Problem]) -> Import:
    """All kernels of a file that are for one of the problems.

    A kernel that comes with its reference belongs to the problem with that very text; another is found by id, or by
    KernelBench's level and number.

    Raises:
        ProblemError: if the file cannot be read.
    """
    find = _Finder(problems.values())
    kernels, mistakes, impossible = [], [], []
    for where, row in read_json_lines(path):
        try:
            if row is None:
                raise _LeftOutError("is no JSON object")
            kernel = _released(row, find, path.stem) if "custom_code" in row else _plain(row, find)
            kernels.append(kernel)
            impossible += [f"{where}: {words}" for words in _impossible_claims(row)]
            if kernel.candidate is None:
                claim = max(kernel.claims.values(), default=None)
                claimed = f", though a speedup of {claim:g} is claimed" if claim else ""
                mistakes.append(f"{where}: there is no code for {kernel.problem_id}{claimed}")
        except _LeftOutError as error:
            mistakes.append(f"{where}: {error}")
    return Import(kernels=tuple(kernels), mistakes=tuple(mistakes), impossible_claims=tuple(impossible))


def summary(imported: Import, *, name: str) -> str:
    """How much of a file is of use, in a line.

    >>> summary(Import(kernels=(), mistakes=("line 1: is no JSON object",)), name="h100.json")
    'h100.json: 0 candidates; 1 line(s) give none'
    """
    origins = Counter(candidate.origin for candidate in imported.candidates)
    found = ", ".join(f"{count} of {origin}" for origin, count in origins.items())
    words = f"{len(imported.candidates)} candidates" + (f" ({found})" if found else "")
    return f"{name}: {words}; {len(imported.mistakes)} line(s) give none"


class _Finder:
    """Finds the problem that a line is about."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self._by_text: dict[str, str] = {}
        self._by_number: dict[tuple[int, int], str] = {}
        self._texts: dict[str, str] = {}
        for problem in problems:
            self._texts[problem.problem_id] = text = reference_hash(problem.source)
            self._by_text.setdefault(text, problem.problem_id)
            if number := level_and_number(problem.problem_id):
                self._by_number.setdefault(number, problem.problem_id)

    def __call__(self, problem_id: str, reference: object) -> str:
        number = level_and_number(problem_id)
        known = problem_id if problem_id in self._texts else self._by_number.get(number) if number else None
        if not isinstance(reference, str):
            if known is None:
                raise _LeftOutError(f"there is no problem {problem_id} here")
            return known
        text = reference_hash(reference)
        if known is not None and self._texts[known] == text:  # a set may hold the same text twice
            return known
        if text in self._by_text:
            return self._by_text[text]
        words = "has another reference here" if known else "is not here, nor is its reference elsewhere"
        raise _LeftOutError(f"{problem_id} {words}; judge it against the problem set that it was written for")


def _released(row: Mapping[str, Any], find: _Finder, stem: str) -> ImportedKernel:
    """A line of CUDA-L1's release, which names its device nowhere but in the file's name."""
    problem_id = find(f"level{row.get('level_id')}/{row.get('task_id')}", row.get("ref_code"))
    return _kernel(row, row["custom_code"], problem_id, origin=f"{RELEASED}-{stem}", device=stem)


def _plain(row: Mapping[str, Any], find: _Finder) -> ImportedKernel:
    problem_id = row.get("problem_id")
    if not isinstance(problem_id, str) or "source" not in row:
        raise _LeftOutError("has neither custom_code nor problem_id and source")
    return _kernel(row, row["source"], find(problem_id, row.get("reference")), origin="imported", device="")


def _kernel(row: Mapping[str, Any], code: object, problem_id: str, *, origin: str, device: str) -> ImportedKernel:
    origin = _text(row, ("origin",)) or origin
    has_code = isinstance(code, str) and code.strip() not in ("", WITHHELD)
    return ImportedKernel(
        problem_id=problem_id,
        origin=origin,
        candidate=Candidate(problem_id=problem_id, source=str(code), origin=origin) if has_code else None,
        device=_text(row, ("device", "gpu")) or device,
        claims={
            baseline: float(row[column])
            for column, baseline in CLAIM_COLUMNS.items()
            if _can_be_speedup(row.get(column))
        },
    )


def _impossible_claims(row: Mapping[str, Any]) -> Iterator[str]:
    for column in CLAIM_COLUMNS:
        if (claim := row.get(column)) not in (None, WITHHELD) and not _can_be_speedup(claim):
            yield f"{column} is {claim!r:.40}, which cannot be a speedup"


def _can_be_speedup(claim: object) -> bool:
    return isinstance(claim, int | float) and not isinstance(claim, bool) and 0 < claim <= MOST_CLAIMED


def _text(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    return next((row[column] for column in columns if isinstance(row.get(column), str)), "")
