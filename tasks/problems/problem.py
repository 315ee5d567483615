"""A problem: a reference PyTorch program in KernelBench format, as text. Nothing here runs it."""

import ast
import hashlib
from dataclasses import dataclass
from enum import StrEnum

from tasks.errors import ProblemError
from tasks.problems.parsing import parsed

REQUIRED_NAMES = ("Model", "get_inputs")
PRECISIONS = ("fp32", "tf32", "fp16", "bf16")


class Split(StrEnum):
    """Which side of the train / held-out line a problem stands on."""

    TRAIN = "train"
    HELD_OUT = "held_out"


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One reference program and what is known about it without running it."""

    problem_id: str
    """The path below the problem folder without its suffix, for example "level1/diag_matmul"."""
    level: int
    """1 single operators, 2 fusions, 3 small networks."""
    family: str
    """Problems of one family are near-duplicates of each other; a split never cuts through a family."""
    split: Split
    source: str
    """Defines Model and get_inputs, and get_init_inputs where the constructor takes arguments."""
    precision: str = "fp32"
    """How exactly candidates must compute, one of PRECISIONS: "fp32" unless the problem says otherwise."""
    problem_set: str = "local"
    """The collection it comes from, told by content, such as "kernelbench-v0"; "local" for files of one's own."""

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise ProblemError(
                f"problem {self.problem_id} asks for precision {self.precision!r}; there are: {', '.join(PRECISIONS)}"
            )
        try:
            tree = parsed(self.source.removeprefix("\ufeff"))
        except (SyntaxError, ValueError) as error:
            raise ProblemError(f"problem {self.problem_id} does not parse: {error}") from None
        missing = [name for name in REQUIRED_NAMES if name not in _bound_names(tree)]
        if missing:
            raise ProblemError(
                f"problem {self.problem_id} lacks {', '.join(missing)}; the KernelBench format needs "
                f"the class Model and the function get_inputs at its top level"
            )

    @property
    def problem_hash(self) -> str:
        """Identity of what is asked: two problems with equal hashes want the same outputs, as exactly."""
        text = self.source if self.precision == "fp32" else f"{self.precision}\n{self.source}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _bound_names(tree: ast.Module) -> set[str]:
    """Names that the module may define: classes, functions, imports, assignments, also under a condition."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return names
