"""Small problems as text, and what their candidates compute when run in this process."""

import linecache
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import libcst as cst
import torch

from tasks.problems.problem import Problem, Split
from tasks.variants.candidate import Candidate
from tasks.variants.recipes import RecipeProvider
from tasks.variants.rewriting import Rewrite, as_candidate_program, render

HEADER = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"

# What kernels are written for: inputs, and the lines of two loops.
MATRIX = "torch.randn(20, 37)"
MOVING_AVERAGE = """
h = torch.zeros_like(x[:, 0])
out = []
for t in range(x.shape[1]):
    h = 0.9 * h + 0.1 * x[:, t]
    out.append(h)
out = torch.stack(out, dim=1)
return out
"""
SERIES = """
y = 0.25 * x * x
term = torch.ones_like(y)
total = torch.ones_like(y)
for k in range(1, 12):
    term = term * y / (k * k)
    total = total + term
return torch.log(total)
"""


def problem(forward: str, inputs: str, *, arguments: str = "x", init: str = "", init_arguments: str = "") -> str:
    """A problem's text; `forward` and `init` are lines of Python, `inputs` and `init_arguments` elements of a list."""
    constructor = ""
    if init:
        names = ", ".join(["self", *(f"size{i}" for i in range(len(init_arguments.split(","))))])
        constructor = f"    def __init__({names}):\n        super().__init__()\n{_indented(init)}\n\n"
    return (
        f"{HEADER}class Model(nn.Module):\n{constructor}"
        f"    def forward(self, {arguments}):\n{_indented(forward)}\n\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\n\ndef get_init_inputs():\n    return [{init_arguments}]\n"
    )


program_of = cache(as_candidate_program)
"""Nothing changes a program, so one is enough."""


def rewritten(source: str, rewrite: Rewrite, *, seed: int = 0) -> str | None:
    """The candidate that a rewrite makes of a problem, or None where it does not apply."""
    program: cst.Module | None = rewrite.apply(program_of(source), random.Random(seed))
    return None if program is None else render(program)


rewritten_once = cache(rewritten)
"""The same, made once a process: where no test changes what a rewrite looks at."""


def first_recipe(source: str) -> tuple[tuple[str, ...], str]:
    """What the provider for GPUs proposes first for a problem: the rewrites that made it, and the text."""
    first = next(_composed(source))
    return first.recipe, first.source


def recipes_of(source: str) -> dict[tuple[str, ...], str]:
    """All that it composes, by the rewrites that made it."""
    return {found.recipe: found.source for found in _composed(source)}


def _composed(source: str) -> Iterator[Candidate]:
    asked = Problem(problem_id="level1/1", level=1, family="any", split=Split.TRAIN, source=source)
    return RecipeProvider("cuda").candidates(asked, seed=0)


@cache
def defined(source: str) -> dict[str, Any]:
    """The names that a program defines; a kernel in it is built once."""
    names: dict[str, Any] = {"__name__": "candidate"}
    filename = f"<candidate {hash(source)}>"
    # Triton reads the text of a kernel as inspect finds it.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), names)
    return names


def outputs(
    source: str, candidate: str, *, inputs: Sequence[torch.Tensor] | None = None, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """What the reference and the candidate return for equal weights and inputs; the candidate's second call counts."""
    reference_names, candidate_names = defined(source), defined(candidate)
    arguments = reference_names["get_init_inputs"]()
    models = []
    for names, entry in ((reference_names, "Model"), (candidate_names, "ModelNew")):
        torch.manual_seed(seed)
        models.append(names[entry](*arguments))
    assert list(models[0].state_dict()) == list(models[1].state_dict())
    torch.manual_seed(seed + 1)
    given = list(inputs) if inputs is not None else reference_names["get_inputs"]()
    with torch.no_grad():
        expected = models[0](*given)
        copies = [tensor.clone() for tensor in given]
        models[1](*(tensor + 1 if tensor.is_floating_point() else tensor for tensor in given))
        found = models[1](*given)
    for tensor, copy in zip(given, copies, strict=True):
        assert torch.equal(tensor.nan_to_num(), copy.nan_to_num()), "the candidate changed its input"
    return expected, found


def _indented(lines: str) -> str:
    return "\n".join(f"        {line}" for line in lines.strip("\n").splitlines())


def ready(source: str, names: Mapping[str, Any]) -> tuple[torch.nn.Module, torch.nn.Module, list[Any]]:
    """The model among the names that a candidate defines, the problem's with the same weights, and inputs."""
    torch.manual_seed(1)
    arguments, inputs = defined(source)["get_init_inputs"](), defined(source)["get_inputs"]()
    model, reference = names["ModelNew"](*arguments), defined(source)["Model"](*arguments)
    model.load_state_dict(reference.state_dict())
    return model, reference, inputs


# A layer and a parameter beside it, for what treats modules as a whole.
LINEAR = problem(
    "x = self.linear(x)\nreturn torch.relu(x) * self.weight",
    "torch.randn(6, 8)",
    init="self.linear = nn.Linear(size0, size0)\nself.weight = nn.Parameter(torch.rand(size0) + 0.5)",
    init_arguments="8",
)
