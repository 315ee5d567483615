"""What of a user's file cannot be made, called or judged is said in a line or two: the thing, the value, the remedy."""

import re
from pathlib import Path

import pytest

from tasks.errors import ProblemError
from tasks.search.survey import survey
from tasks.search.user_file import read_user_file

SOURCE = """import dataclasses
import sys

import torch
from torch import nn


@dataclasses.dataclass
class Batch:
    x: torch.Tensor


class Sized(nn.Module):
    def __init__(self, size, **more):
        super().__init__()


class Mine(nn.Module):
    def __init__(self, size, *, bias):
        super().__init__()
        self.linear = nn.Linear(size, size, bias)

    def forward(self, x):
        return self.linear(x)


def example_inputs():
    return [torch.rand(2, 4)]


def example_init():
    return {"size": 4, "bias": True}
"""
INPUTS = "[torch.rand(2, 4)]"
INIT = '{"size": 4, "bias": True}'
QUANTISED = "torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(size, size)), {nn.Linear})"
EXTRA_STATE = (
    "nn.Linear(size, size, bias)\n    def get_extra_state(self): return 'mine'\n    def set_extra_state(self, s): pass"
)


def refusal(folder: Path, old: str, new: str) -> str:
    """What is said of the file without its name and place."""
    assert old in SOURCE
    path = folder / "mine.py"
    path.write_text(SOURCE.replace(old, new, 1))
    with pytest.raises(ProblemError) as refused:
        survey(read_user_file(path, "Mine"))
    words = str(refused.value)
    assert words.startswith(f"{path} " if "ended its process" in words else f"{path}: ")
    return words.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param(
            INPUTS,
            "[torch.rand(2), {'key': Batch(torch.rand(2, 4))}]",
            "example_inputs()[1]['key'] is a Batch, but arguments can be tensors, numbers, strings, None, and lists, "
            "tuples and mappings of these: give the parts of it, and make a Batch of them in forward",
            id="a dataclass",
        ),
        pytest.param(
            INPUTS,
            "torch.rand(next(sizes), 4)\n\nsizes = iter([3, 17])",
            "example_inputs() is float32 [3, 4] in one call and float32 [17, 4] in the next: let it always give the "
            "same shape and dtype; for several shapes, run this for each",
            id="other shapes",
        ),
        pytest.param(
            INPUTS,
            "{'x': torch.rand(2, 4).to(next(kinds))}\n\nkinds = iter([torch.float32, torch.float64])",
            "example_inputs()['x'] is float32 [2, 4] in one call and float64 [2, 4] in the next: let it",
            id="other dtypes",
        ),
        pytest.param(
            INPUTS,
            "[torch.rand(2, 4)] * next(counts)\n\ncounts = iter([1, 2])",
            "example_inputs() is a list of 1 in one call and a list of 2 in the next: let it",
            id="another number",
        ),
        pytest.param(
            INPUTS,
            "{next(names): torch.rand(2, 4)}\n\nnames = iter(['x', 'y'])",
            "example_inputs() is a mapping of x in one call and a mapping of y in the next: let it",
            id="other names",
        ),
        pytest.param(
            INPUTS,
            "[next(values)]\n\nvalues = iter([torch.rand(2, 4), None])",
            "example_inputs()[0] is float32 [2, 4] in one call and a NoneType in the next: let it",
            id="another kind",
        ),
        pytest.param(
            INPUTS,
            "[torch.rand(0, 4)]",
            "example_inputs()[0] has no elements: float32 [0, 4]. Nothing can be judged by that; let it have some",
            id="no elements",
        ),
        pytest.param(
            "import torch\n",
            "import torch\nsys.exit(3)\n",
            "it ends itself when it is imported (SystemExit(3)): put what only a program does under "
            'if __name__ == "__main__":',
            id="exits when imported",
        ),
        pytest.param(
            "class Mine(nn.Module)",
            "class Mine(Batch)",
            "Mine is no torch.nn.Module: let it inherit from that",
            id="no module",
        ),
        pytest.param(
            INIT,
            '{"size": 4}',
            "example_init returns {'size': 4}, but Mine takes (size, *, bias): missing a required argument: 'bias'; "
            "let it return what fits",
            id="an argument is missing",
        ),
        pytest.param(
            INIT,
            "[4, True]",
            "example_init returns [4, True], but Mine takes (size, *, bias): too many positional arguments; let it",
            id="an argument is too many",
        ),
        pytest.param(
            SOURCE[SOURCE.index("class Mine(") :],
            SOURCE[SOURCE.index("class Mine(") :]
            .replace("nn.Module", "Sized")
            .replace("__init__", "other")
            .replace("example_init", "init"),
            "Mine takes (size, **more): missing a required argument: 'size'; add a function that returns all it needs, "
            "such as: def example_init(): return {'size': ...}",
            id="an argument of an inherited constructor is missing",
        ),
        pytest.param(
            "nn.Linear(size, size, bias)",
            QUANTISED,
            "the state dict of Mine has things that are no tensors, such as linear.0._packed_params.dtype, as of a "
            "quantised module: its weights cannot be changed to see whether they are read. Name a class that is not "
            "quantised",
            id="quantised",
        ),
    ],
)
def test_what_cannot_be_is_said_in_words_with_the_remedy(tmp_path: Path, old: str, new: str, words: str) -> None:
    said = refusal(tmp_path, old, new)
    assert said.startswith(words)
    assert "\n" not in said


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param("self.linear(x)", "x @ x", "shapes cannot be multiplied", id="call fails"),
        pytest.param('"size": 4', '"size": "four"', "TypeError", id="constructor fails"),
        pytest.param("import torch\n", "import torch\nimport nosuchthing\n", "'nosuchthing'", id="import fails"),
        pytest.param("return self.linear(x)", "raise SystemExit", "SystemExit", id="exits when called"),
    ],
)
def test_an_error_of_the_file_is_shown_with_the_lines_of_the_file_alone(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    said = refusal(tmp_path, old, new)
    first, _, trace = said.partition("\n")
    assert first == "Mine cannot be made and called as its functions say:"
    assert re.search(rf'File "{tmp_path}/mine\.py", line \d+', trace)
    assert words in trace.splitlines()[-1]
    assert "surveying" not in trace


def test_a_file_that_ends_its_process_is_said_to_do_so(tmp_path: Path) -> None:
    assert "ended its process" in refusal(tmp_path, "return self.linear(x)", "__import__('os')._exit(3)")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(INPUTS, "[torch.rand(2, 4), torch.rand(0, 4)]", id="one input of several has no elements"),
        pytest.param("nn.Linear(size, size, bias)", EXTRA_STATE, id="an extra state that is no tensor"),
    ],
)
def test_what_can_be_judged_is_not_refused(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE.replace(old, new, 1).replace("forward(self, x)", "forward(self, x, *others)"))
    assert survey(read_user_file(path, "Mine")).inputs


def test_an_input_without_elements_is_refused_where_it_leaves_no_output(tmp_path: Path) -> None:
    old = SOURCE[SOURCE.index("forward(") : SOURCE.index("\n\n\ndef example_init")]
    new = (
        old.replace("(self, x)", "(self, x, y)").replace("self.linear(x)", "y").replace("2, 4)", "2, 4), torch.rand(0)")
    )
    assert refusal(tmp_path, old, new).startswith("example_inputs()[1] has no elements: float32 [0]. Nothing")
