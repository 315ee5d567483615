"""Drop-ins whose every output says whether the candidate computed it."""

import sys
import types
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import torch

from tasks.search.drop_in import drop_in
from tasks.search.survey import Survey
from tasks.search.user_file import read_user_file
from tasks.variants.candidate import Candidate

MARKS = {
    "return self.inner(x)": "return 1 + self.inner(x)",
    "return self.weight": "return 1 + self.weight",
}
FACTS = Survey(inputs=(("tensor", "float32", (3, 2, 4), (8, 4, 1)),), named_inputs={}, constructor=None)


def imported(
    folder: Path, source: str, *, facts: Survey = FACTS, marks: Mapping[str, str] = MappingProxyType({})
) -> types.ModuleType:
    """The drop-in of a candidate that adds 1 to the reference, imported; with further changes of its text."""
    path = folder / "user_module.py"
    path.write_text(source)
    marked = source.replace("Block", "ModelNew")
    for old, new in {**MARKS, **marks}.items():
        marked = marked.replace(old, new)
    candidate = Candidate(problem_id="x", source=marked, origin="test")
    made = drop_in(read_user_file(path, "Block"), facts, candidate, problem_id="x")
    module = types.ModuleType("user_module")
    sys.modules["user_module"] = module  # pickle looks classes up by it
    exec(compile(made.source, str(path), "exec"), module.__dict__)
    return module


@torch.no_grad()
def is_fast(module: types.ModuleType, block: torch.nn.Module) -> bool:
    """Whether a call was the candidate's, as the output says."""
    x = torch.randn(3, 2, 4)
    extra = float((block(x) - module.ReferenceBlock.forward(block, x)).mean())
    assert min(abs(extra), abs(extra - 1)) < 1e-5
    return extra > 0.5
