"""What a drop-in must not do to a user's program: run it twice, write to its weights, or answer for another module."""

import copy
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from tasks.errors import RecordError
from tasks.search.drop_in import drop_in
from tasks.search.user_file import read_user_file
from tasks.variants.candidate import Candidate
from tests.drop_in_builders import FACTS, imported

SOURCE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, inner=None):
        super().__init__()
        self.inner = inner or nn.Linear(4, 4)

    def forward(self, x):
        return self.inner(x)


def example_inputs():
    return torch.randn(3, 2, 4)
"""
PROGRAM = """

if __name__ == "__main__":
    x = torch.randn(3, 2, 4)
    Block()(x)
"""
OTHERS = {
    "wrapped": "\n\nBlock = torch.compiler.disable(Block)\n",
    "defined again": "\n\ntry:\n    import nothing\nexcept ImportError:\n    class Block(Block):\n        pass\n",
    "a function": "\n\n_Block = Block\n\n\ndef Block(*arguments):\n    return _Block(*arguments)\n",
}


def answered_by_fast(model: torch.nn.Module, x: torch.Tensor) -> bool:
    with torch.no_grad():
        return torch.equal(model(x), 1 + model.inner(x))  # type: ignore[operator]


def test_what_a_file_does_as_a_program_stands_in_it_once(tmp_path: Path) -> None:
    path = tmp_path / "block.py"
    path.write_text(SOURCE + PROGRAM)
    candidate = Candidate(problem_id="x", source=(SOURCE + PROGRAM).replace("Block", "ModelNew"), origin="test")
    made = drop_in(read_user_file(path, "Block"), FACTS, candidate, problem_id="x")
    assert made.source.count("__main__") == 1


@pytest.mark.parametrize("name", OTHERS)
def test_a_name_that_stands_for_something_else_in_the_end_gets_no_drop_in(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordError, match="gives the name Block to something else"):
        imported(tmp_path, SOURCE + OTHERS[name])


def test_weights_that_a_constructor_was_given_are_not_made_anew(tmp_path: Path) -> None:
    source = SOURCE.replace("or nn.Linear(4, 4)", "or nn.Linear(4, 4)\n        nn.init.zeros_(self.inner.weight)")
    # another text, so that the fast form needs its own constructor
    module = imported(tmp_path, source, marks={"super().__init__()": "super().__init__()\n        self.more = 1"})
    model = module.Block(torch.nn.Linear(4, 4))
    torch.nn.init.ones_(model.inner.weight)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert not answered_by_fast(model, module.example_inputs())
    assert any("made with modules or tensors" in str(each.message) for each in told)
    assert model.inner.weight.sum() == 16


@pytest.mark.parametrize(
    "change",
    [
        "nn.init.zeros_(self.inner.weight)",
        "self.inner.weight.data.zero_()",
        "self.inner.weight = nn.Parameter(torch.zeros(4, 4))",
        "self.inner.__init__(4, 4)",
    ],
)
def test_weights_that_a_constructor_finds_in_an_object_are_not_made_anew(tmp_path: Path, change: str) -> None:
    source = SOURCE.replace("inner=None", "config").replace("inner or nn.Linear(4, 4)", "config.inner")
    source = source.replace("config.inner\n", f"config.inner\n        {change}\n")
    source += """

class Config:
    def __init__(self):
        self.inner = nn.Linear(4, 4)


def example_init():
    return [Config()]
"""
    module = imported(tmp_path, source, marks={"super().__init__()": "super().__init__()\n        self.more = 1"})
    model = module.Block(module.Config())
    with torch.no_grad():
        model.inner.weight.copy_(torch.arange(16.0).view(4, 4))
        model.inner.bias.fill_(float("nan"))
    with pytest.warns(UserWarning, match="changes parts or weights"), torch.no_grad():
        model(module.example_inputs())
    assert torch.equal(model.inner.weight, torch.arange(16.0).view(4, 4))
    assert model.inner.bias.isnan().all()


def test_another_class_of_a_part_and_weights_that_lie_otherwise_are_noticed(tmp_path: Path) -> None:
    module = imported(tmp_path, SOURCE)
    model, x = module.Block(), module.example_inputs()
    assert answered_by_fast(model, x)

    class Other(torch.nn.Linear):
        pass

    model.inner.__class__ = Other
    assert not answered_by_fast(model, x)
    model.inner.__class__ = torch.nn.Linear
    assert answered_by_fast(model, x)
    model.inner.weight = torch.nn.Parameter(model.inner.weight.detach().t())
    assert not answered_by_fast(model, x)


def test_what_was_made_in_inference_mode_may_be_written_to_without(tmp_path: Path) -> None:
    marks = {
        "super().__init__()": "super().__init__()\n        self.room = torch.zeros(3, 2, 4)",
        "return self.inner(x)": "return self.room.copy_(self.inner(x)) + 1",
    }
    module = imported(tmp_path, SOURCE, marks=marks)
    model, x = module.Block(), module.example_inputs()
    with torch.inference_mode():
        model(x)
    assert answered_by_fast(model, x)


OWN_NAME = """
Number = TypeVar("Number")


class Block(nn.Module, Generic[Number]):
    def __init__(self, depth=1):
        super(Block, self).__init__()
        self.inner = nn.Linear(4, 4)
        self.child = Block(depth - 1) if depth else None

    def forward(self, x):
        return self.inner(x)

    @staticmethod
    def make():
        return Block()


Alias = Block
"""


def test_what_goes_by_another_name_or_is_made_by_the_class_itself_is_of_the_class(tmp_path: Path) -> None:
    start = SOURCE.index("class Block")
    source = SOURCE[:start] + OWN_NAME.lstrip() + SOURCE[SOURCE.index("\n\ndef example_inputs") :]
    module = imported(
        tmp_path, source.replace("import torch\n", "from typing import Generic, TypeVar\n\nimport torch\n", 1)
    )
    model = module.Block()
    assert module.Alias is module.Block
    assert type(model.child) is type(module.Block.make()) is type(model) is module.Block
    assert isinstance(module.Block[int](), module.Block)
    assert type(pickle.loads(pickle.dumps(model)).child) is module.Block
    assert answered_by_fast(model, module.example_inputs())


def test_threads_that_call_first_at_once_make_one_fast_form(tmp_path: Path) -> None:
    marks = {"super().__init__()": "super().__init__()\n        self.more = __import__('threading').Lock()"}
    module = imported(tmp_path, SOURCE, marks=marks)
    model, x = module.Block(), module.example_inputs()
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: answered_by_fast(model, x), range(16)))
    assert answered_by_fast(copy.deepcopy(model), x)
