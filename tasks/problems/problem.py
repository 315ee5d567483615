"""A problem: a reference PyTorch program in KernelBench format, as text. Nothing here runs it."""

import ast
import hashlib
from dataclasses import dataclass
from enum import StrEnum

from tasks.errors import ProblemError

REQUIRED_NAMES = ("Model", "get_inputs", "get_init_inputs")


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
    """Defines Model, get_inputs and get_init_inputs."""

    def __post_init__(self) -> None:
        try:
            tree = ast.parse(self.source)
        except (SyntaxError, ValueError) as error:
            raise ProblemError(f"problem {self.problem_id} does not parse: {error}") from None
        defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        missing = [name for name in REQUIRED_NAMES if name not in defined]
        if missing:
            raise ProblemError(
                f"problem {self.problem_id} lacks {', '.join(missing)}; the KernelBench format needs "
                f"the class Model and the functions get_inputs and get_init_inputs at its top level"
            )

    @property
    def problem_hash(self) -> str:
        """Identity of the text: two problems with equal hashes ask for the same outputs at the same shapes."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]
