"""Drop-ins whose every output says whether the candidate computed it."""

import re
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

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
TEXTS: dict[tuple[str, str, str], str] = {}
"""Of this process. Making one runs its file in another process, though equal files give equal texts wherever they lie:
most tests of a file of tests have one source, and modules of their own made of one text."""


def imported(
    folder: Path,
    source: str,
    *,
    facts: Survey = FACTS,
    marks: Mapping[str, str] = MappingProxyType({}),
    is_checked: bool = True,
) -> types.ModuleType:
    """The drop-in of a candidate that adds 1 to the reference, imported; with further changes of its text.

    Where it is checked, every call of it asserts that what is not compared in full would have been as judged.
    """
    return of_text(text_of(folder, source, facts=facts, marks=marks), folder, is_checked=is_checked)


def text_of(
    folder: Path, source: str, *, facts: Survey = FACTS, marks: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The text of that drop-in."""
    path = folder / "user_module.py"
    path.write_text(source)
    marked = source.replace("Block", "ModelNew")
    for old, new in {**MARKS, **marks}.items():
        marked = marked.replace(old, new)
    key = source, marked, repr(facts)
    if key not in TEXTS:
        candidate = Candidate(problem_id="x", source=marked, origin="test")
        TEXTS[key] = drop_in(read_user_file(path, "Block"), facts, candidate, problem_id="x").source
    return TEXTS[key]


def of_text(text: str, folder: Path, *, is_checked: bool = True) -> types.ModuleType:
    """The module of such a text, imported."""
    module = types.ModuleType("user_module")
    sys.modules["user_module"] = module  # pickle looks classes up by it
    exec(compile(text, str(folder / "user_module.py"), "exec"), module.__dict__)
    if is_checked:
        _compare_in_full_too(module)
    return module


def of_drop_in(module: types.ModuleType, name: str) -> Any:
    """What the drop-in has under a name, which has a number behind it where the file had the name before."""
    return getattr(module, max((each for each in vars(module) if re.fullmatch(rf"_{name}\d*", each)), key=len))


def _compare_in_full_too(module: types.ModuleType) -> None:
    """Whenever it shows at once that a call is as before."""
    seen = of_drop_in(module, "Seen")
    at_once = seen.known_as

    def known_as(self: Any, served: torch.nn.Module, fast: torch.nn.Module, inputs: Any, named: Any) -> Any:
        known = at_once(self, served, fast, inputs, named)
        if known is not None:
            assert not torch.is_grad_enabled()
            assert of_drop_in(module, "is_usual")()
            call = of_drop_in(module, "as_judged")(inputs, named)
            assert call is not None
            assert call[0] is inputs
            assert [*call[1]] == [*named]
            assert of_drop_in(module, "APART") is None or of_drop_in(module, "are_apart")(call)
            assert self.is_judged
            assert self.is_still(served)
            twin: Any = served._fast
            assert twin.seen is self
            assert twin.fast is fast
            assert torch.is_inference_mode_enabled() in twin.has_run
        return known

    seen.known_as = known_as


@torch.no_grad()
def is_fast(module: types.ModuleType, block: torch.nn.Module) -> bool:
    """Whether a call was the candidate's, as the output says."""
    x = torch.randn(3, 2, 4)
    extra = float((block(x) - module.ReferenceBlock.forward(block, x)).mean())
    assert min(abs(extra), abs(extra - 1)) < 1e-5
    return extra > 0.5
