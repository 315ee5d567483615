"""What a drop-in adds to a file takes no name that the file uses, and finds what it needs there or imports it."""

import types
from pathlib import Path

import pytest
import torch

from tests.drop_in_builders import imported

SOURCE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Identity()

    def forward(self, x):
        return self.inner(x)


def example_inputs():
    return torch.randn(3, 2, 4)
"""
USES = {
    "return self.inner(x)": "return 1 + F.relu(self.inner(x)) * math.sqrt(1.0) + nn.functional.relu(-x) * -1",
    "import torch\n": "import torch\nimport math\nimport torch.nn.functional as F\n",
}
TAKEN = ("functools", "hashlib", "warnings", "random", "sys", "weakref", "map", "id", "len", "isinstance", "globals")
OTHER = """

def flattened(x):
    T, F = x.shape
    return [math for math in range(T * F)]
"""


@torch.no_grad()
def is_fast(file: types.ModuleType) -> bool:
    block, x = file.Block().eval(), torch.randn(3, 2, 4)
    return torch.allclose(block(x), x + 1)


def test_a_local_name_of_an_unrelated_function_takes_no_import(tmp_path: Path) -> None:
    file = imported(tmp_path, SOURCE + OTHER, marks=USES)
    assert is_fast(file)
    assert file.flattened(torch.ones(2, 3)) == [*range(6)]


@pytest.mark.parametrize(
    ("name", "binding"),
    [
        pytest.param("F", "F = 64", id="a number"),
        pytest.param("math", "math = 64", id="a number of another name"),
        pytest.param("F", "import math as F", id="another import"),
        pytest.param("F", "try:\n    import nowhere as F\nexcept ImportError:\n    F = 64", id="of several"),
        pytest.param("F", "with open(__file__) as F:\n    pass", id="of a block"),
        pytest.param("F", "F = 64\n\n\ndef set_it():\n    global F\n    F = 65", id="a global of a function"),
    ],
)
def test_a_name_of_the_file_stays_its_own(tmp_path: Path, name: str, binding: str) -> None:
    path = tmp_path / "user_module.py"
    source = SOURCE.replace("\n\nclass Block", f"\n{binding}\n\n\ndef own():\n    return {name}\n\n\nclass Block")
    candidate = {f"\n{binding}\n": "\n", f"\n\ndef own():\n    return {name}\n": "\n"}
    file = imported(
        tmp_path,
        source.replace("__file__", repr(str(path))),
        marks={**{old.replace("__file__", repr(str(path))): new for old, new in candidate.items()}, **USES},
    )
    assert is_fast(file)
    own = {"F = 64": 64, "math = 64": 64, "import math as F": __import__("math")}
    wanted = next((value for text, value in own.items() if text in binding), None)
    assert file.own() == wanted if wanted is not None else file.own().name == str(path)


def test_another_name_for_the_same_library_is_as_good(tmp_path: Path) -> None:
    source = SOURCE.replace("from torch import nn", "import torch.nn as nn\nfrom torch.nn import functional as F")
    file = imported(tmp_path, source, marks={"return self.inner(x)": "return 1 + F.relu(x) - F.relu(-x)"})
    assert is_fast(file)


def test_a_file_that_does_not_call_torch_by_its_name_is_fast(tmp_path: Path) -> None:
    source = SOURCE.replace(
        "import torch\nfrom torch import nn", "import torch.nn as nn\ntorch = None\nimport torch as th"
    )
    source = source.replace("torch.randn", "th.randn")
    candidate = {"torch = None\n": "", "import torch.nn as nn\n": "import torch\nimport torch.nn as nn\n"}
    candidate["return self.inner(x)"] = "return torch.ones(()) + self.inner(x)"
    file = imported(tmp_path, source, marks=candidate)
    assert is_fast(file)
    assert file.torch is None


def test_what_is_added_has_no_names_that_a_star_would_import_but_those_of_its_classes(tmp_path: Path) -> None:
    public = {name for name in vars(imported(tmp_path, SOURCE)) if not name.startswith("_")}
    assert public == {"torch", "nn", "Block", "ReferenceBlock", "FastBlock", "example_inputs"}


@pytest.mark.parametrize("made_otherwise", [False, True])
def test_a_star_of_the_file_may_import_any_name(tmp_path: Path, made_otherwise: bool) -> None:
    source = SOURCE.replace("from torch import nn\n", "from torch import nn\nfrom torch import *\n")
    marks = {"super().__init__()": "super().__init__()\n        self.more = 1"} if made_otherwise else {}
    file = imported(tmp_path, source, marks=marks)
    assert is_fast(file)
    assert (file.all, file.range) == (torch.all, torch.range)


def test_names_that_the_choice_needs_may_be_taken(tmp_path: Path) -> None:
    text = "\n".join(f"{name} = ['{name}']" for name in TAKEN)
    file = imported(tmp_path, f"{SOURCE}\n\n{text}\n")
    assert is_fast(file)
    assert all(getattr(file, name) == [name] for name in TAKEN)


def test_what_a_candidate_imports_from_the_future_or_in_a_function_does_no_harm(tmp_path: Path) -> None:
    marks = {"import torch\n": "from __future__ import annotations\nimport torch\n"}
    marks["return self.inner(x)"] = (
        "from torch.nn import functional\n        import torch.nn.functional as other\n"
        "        return functional.relu(x) - other.relu(-x) + torch.ones(())"
    )
    file = imported(tmp_path, f"{SOURCE}\n\nfunctional = other = 64\n", marks={**marks, "functional = other = 64": ""})
    assert is_fast(file)
    assert file.functional == file.other == 64
