"""Problems and candidates for the tests of the judge, read from tests/kernels without running any of them.

tests/kernels/honest must be paid, hostile must not, broken fail by accident; cuda/ has the same for a GPU. Each file
declares PROBLEM (a file of problems/) and EXPECTED (a status, or a tuple of them), may declare TRACK, MAX_SPEEDUP and
PRECISION, and a hostile one declares GROUP, the kind of hack that it is.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.params import JudgeParams
from tasks.problems.problem import Problem, Split
from tasks.variants.candidate import Candidate

KERNELS = Path(__file__).parent / "kernels"
PARAMS = JudgeParams(device="cpu", workers=2, trials=3, rounds=5, timeout_s=10.0, memory_bytes=1 << 30)


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """A candidate that declares the verdict it deserves."""

    name: str
    """The path below tests/kernels without its suffix, such as "hostile/zeros"."""
    source: str
    problem: Problem
    declared: dict[str, Any]

    @property
    def expected(self) -> tuple[str, ...]:
        """The statuses that are right."""
        declared = self.declared["EXPECTED"]
        return (declared,) if isinstance(declared, str) else declared

    @property
    def candidate(self) -> Candidate:
        return Candidate(problem_id=self.problem.problem_id, source=self.source, origin="test")


def kernel(path: Path) -> Kernel:
    """Read a file whose first lines declare literals; some of the files do not even parse."""
    source = path.read_text()
    lines = re.findall(r"^([A-Z_]+) = (.+)$", source, flags=re.MULTILINE)
    declared = {
        name: ast.literal_eval(value)
        for name, value in lines
        if name in ("PROBLEM", "EXPECTED", "TRACK", "MAX_SPEEDUP", "PRECISION", "GROUP")
    }
    folder = path.relative_to(KERNELS).parent
    return Kernel(
        name=str(folder / path.stem),
        source=source,
        problem=problem(declared["PROBLEM"], folder="cuda/problems" if "cuda" in folder.parts else "problems"),
        declared=declared,
    )


def kernels(*, device: str = "cpu") -> list[Kernel]:
    """All kernels for a kind of device, "cpu" or "cuda"."""
    root = KERNELS / "cuda" if device == "cuda" else KERNELS
    return [kernel(path) for kind in ("broken", "honest", "hostile") for path in sorted((root / kind).glob("*.py"))]


def problem(name: str, *, folder: str = "problems") -> Problem:
    return problem_of((KERNELS / folder / f"{name}.py").read_text(), name=name)


def problem_of(source: str, *, name: str = "inline") -> Problem:
    return Problem(problem_id=f"tests/{name}", level=1, family="tests", split=Split.TRAIN, source=source)


def running(words: str) -> list[int]:
    """Processes of this machine whose command line contains the words."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if words in command:
            found.append(int(path.parent.name))
    return found
