"""The drop-in file: fast where it was judged, the original everywhere else, and the original's state dict throughout.

The candidate used here adds 1 to what the reference returns, so that every output says which of the two computed it.
"""

import copy
import pickle
import sys
import types
from pathlib import Path

import pytest
import torch

from tasks.search.drop_in import MARK, drop_in, judged_mode
from tasks.search.survey import Survey
from tasks.search.user_file import read_user_file
from tasks.variants.candidate import Candidate

SOURCE = '''"""Somebody's file."""

from __future__ import annotations

import torch
from torch import nn

SCALE = 2.0
REGISTER = {}


def register(kind):
    REGISTER[kind.__name__] = kind
    return kind


class Inner(nn.Module):
    """Used by Block and by others."""

    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x)  # comment


@register
class Block(nn.Module):
    def __init__(self, size: int, *, shift: float = 0.0):
        super(Block, self).__init__()
        self.inner = Inner(size)
        self.shift = shift
        self.dropout = nn.Dropout(0.5)
        self.register_buffer("table", torch.zeros(size))

    def forward(self, x, flag=True):
        """What it does."""
        return self.dropout(self.inner(x)) * SCALE + self.shift + self.table


class Bigger(Block):
    pass


def example_init():
    return {"size": 4}


def example_inputs():
    return torch.randn(3, 4)


if __name__ == "__main__":
    print(Block(4))
'''
MARKED = """import torch
from torch import nn

SCALE = 2.0


class Inner(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x)


def register(value):
    return value + EXTRA


EXTRA = 1.0


class ModelNew(nn.Module):
    def __init__(self, size: int, *, shift: float = 0.0):
        super(ModelNew, self).__init__()
        self.inner = Inner(size)
        self.shift = shift
        self.register_buffer("table", torch.zeros(size))
        self.register_buffer("own", torch.ones(1), persistent=False)
        self.eval()

    def forward(self, x, flag=True):
        return register(self.inner(x) * SCALE + self.shift + self.table) * self.own
"""
FACTS = Survey(inputs=(("tensor", "float32", (3, 4), (4, 1)),), named_inputs={}, constructor=None)


@pytest.fixture
def written(tmp_path: Path) -> types.ModuleType:
    """The drop-in, imported."""
    return imported(tmp_path, MARKED)


def imported(folder: Path, candidate: str) -> types.ModuleType:
    path = folder / "user_module.py"
    path.write_text(SOURCE)
    made = drop_in(
        read_user_file(path, "Block"),
        FACTS,
        Candidate(problem_id="x", source=candidate, origin="test"),
        problem_id="x",
    )
    path.write_text(made.source)
    module = types.ModuleType("user_module")
    sys.modules["user_module"] = module  # pickle looks classes up by it
    exec(compile(made.source, str(path), "exec"), module.__dict__)
    return module


def reference_of(module: types.ModuleType, block: torch.nn.Module) -> torch.nn.Module:
    reference = module.ReferenceBlock(4)
    reference.load_state_dict(block.state_dict())
    return reference.train(block.training)


def added(module: types.ModuleType, block: torch.nn.Module, x: torch.Tensor) -> float:
    """What the block returns beyond the reference with the same weights: 1 where it is fast, else 0."""
    return round(float((block(x) - reference_of(module, block)(x)).detach().mean()), 5)


def test_it_is_fast_where_it_was_judged_and_only_there(written: types.ModuleType) -> None:
    block, x = written.Block(4).eval(), torch.randn(3, 4)
    with torch.no_grad():
        assert added(written, block, x) == 1
        assert added(written, block, torch.randn(5, 4)) == 0
        assert added(written, block, torch.randn(4, 3).T) == 0
    with torch.inference_mode():
        assert added(written, block, x) == 1
    assert added(written, block, x) == 0  # gradients are on


def test_training_mode_is_the_references_own(written: types.ModuleType) -> None:
    block, x = written.Block(4).train(), torch.randn(3, 4)
    with torch.no_grad():
        reference = reference_of(written, block)
        torch.manual_seed(0)
        found = block(x)
        torch.manual_seed(0)
        assert torch.equal(found, reference(x))


def test_gradients_are_those_of_the_reference(written: types.ModuleType) -> None:
    block = written.Block(4).eval()
    x = torch.randn(3, 4, requires_grad=True)
    with torch.no_grad():
        block(torch.randn(3, 4))  # has its fast form by now
    reference = reference_of(written, block)
    found = torch.autograd.grad(block(x).square().sum(), [x, *block.parameters()])
    wanted = torch.autograd.grad(reference(x).square().sum(), [x, *reference.parameters()])
    assert all(torch.equal(*pair) for pair in zip(found, wanted, strict=True))


def test_the_state_dict_is_the_references_both_ways_before_and_after_calls(written: types.ModuleType) -> None:
    block, reference, x = written.Block(4).eval(), written.ReferenceBlock(4).eval(), torch.randn(3, 4)
    for _ in range(2):
        assert list(block.state_dict()) == list(reference.state_dict())
        block.load_state_dict(reference.state_dict(), strict=True)
        with torch.no_grad():
            assert torch.allclose(block(x), reference(x) + 1)
            for weight in block.parameters():
                weight.mul_(1.5)
            reference.load_state_dict(block.state_dict(), strict=True)
            assert torch.allclose(block(x), reference(x) + 1)


@torch.no_grad()
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda block: block.double().float().double(), id="another dtype"),
        pytest.param(lambda block: block.inner.double(), id="another dtype of a part"),
        pytest.param(lambda block: setattr(block, "inner", torch.nn.Linear(4, 4)), id="another part"),
        pytest.param(lambda block: setattr(block.inner, "linear", torch.nn.Linear(4, 4)), id="another inner part"),
        pytest.param(lambda block: block.inner.register_forward_hook(lambda *_: None), id="hook inside"),
        pytest.param(lambda block: torch.nn.utils.parametrizations.weight_norm(block.inner.linear), id="parametrised"),
        pytest.param(lambda block: block.train(), id="training mode"),
    ],
)
def test_a_module_that_was_changed_inside_runs_as_the_reference(written: types.ModuleType, change: object) -> None:
    block, x = written.Block(4).eval(), torch.randn(3, 4)
    block(x)
    change(block)  # type: ignore[operator]
    x = x.double() if next(block.parameters()).dtype == torch.float64 else x
    torch.manual_seed(0)
    with torch.autograd.set_grad_enabled(False):
        try:
            found: object = block(x)
        except RuntimeError as error:  # dtypes that do not go together: the reference says so too
            found = str(error)
    torch.manual_seed(0)
    try:
        wanted: object = written.ReferenceBlock.forward(block, x)
    except RuntimeError as error:
        wanted = str(error)
    assert torch.equal(found, wanted) if isinstance(found, torch.Tensor) else found == wanted  # type: ignore[arg-type]


@torch.no_grad()
def test_an_attribute_that_is_set_later_counts(written: types.ModuleType) -> None:
    block, x = written.Block(4, shift=1.0).eval(), torch.randn(3, 4)
    before = block(x)
    block.shift = 5.0
    assert torch.allclose(block(x), before + 4)


@torch.no_grad()
def test_copies_and_pickles_have_weights_of_their_own_and_are_fast_again(written: types.ModuleType) -> None:
    block, x = written.Block(4).eval(), torch.randn(3, 4)
    block(x)
    for other in (copy.deepcopy(block), pickle.loads(pickle.dumps(block))):
        assert torch.equal(other(x), block(x))
        other.inner.linear.weight.add_(1)
        assert added(written, other, x) == 1
        assert not torch.equal(other(x), block(x))


def test_the_constructor_and_the_random_numbers_are_the_references(written: types.ModuleType) -> None:
    drawn = []
    for kind in (written.Block, written.ReferenceBlock):
        torch.manual_seed(3)
        block = kind(size=4, shift=0.5).eval()
        with torch.no_grad():
            block(torch.ones(3, 4))
        drawn.append((block.inner.linear.weight, torch.rand(3)))
    assert all(torch.equal(*pair) for pair in zip(*drawn, strict=True))
    with pytest.raises(TypeError):
        written.Block()


def test_other_classes_and_the_rest_of_the_file_stay(written: types.ModuleType) -> None:
    assert issubclass(written.Bigger, written.ReferenceBlock)
    assert {"Block": written.Block} == written.REGISTER
    assert written.Block.__name__ == "Block"
    assert written.Block.forward.__doc__ == "What it does."
    assert "# comment" in Path(written.Block.forward.__code__.co_filename).read_text()
    with torch.no_grad():
        written.Bigger(4).eval()(torch.randn(3, 4))


def test_a_build_that_fails_costs_the_speed_and_not_the_module(tmp_path: Path) -> None:
    module = imported(tmp_path, MARKED.replace("EXTRA = 1.0", "EXTRA = float('no compiler')"))
    block = module.Block(4).eval()
    with (
        pytest.warns(UserWarning, match="stays as slow as it was: ValueError: could not convert.*no compiler"),
        torch.no_grad(),
    ):
        assert added(module, block, torch.randn(3, 4)) == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("self.shift = shift", "self.shift = shift; self.w = nn.Parameter(torch.ones(1))", id="own weight"),
        pytest.param("self.inner = Inner(size)", "self.inner = nn.Linear(size, size)", id="another kind of module"),
    ],
)
def test_a_candidate_with_other_weights_or_modules_never_serves(tmp_path: Path, old: str, new: str) -> None:
    module = imported(tmp_path, MARKED.replace(old, new))
    block = module.Block(4).eval()
    with pytest.warns(UserWarning, match="its fast form"), torch.no_grad():
        assert added(module, block, torch.randn(3, 4)) == 0
    assert list(block.state_dict()) == ["table", "inner.linear.weight", "inner.linear.bias"]


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        pytest.param(SOURCE, False, id="dropout"),
        pytest.param(SOURCE.replace("nn.Dropout(0.5)", "nn.Identity()").replace("dropout", "same"), None, id="neither"),
        pytest.param("import numpy\n" + SOURCE.replace("Dropout", "Same").replace("dropout", "x"), False, id="unknown"),
    ],
)
def test_the_mode_matters_unless_the_text_shows_that_it_does_not(tmp_path: Path, text: str, mode: bool | None) -> None:
    path = tmp_path / "file.py"
    path.write_text(text)
    assert judged_mode(read_user_file(path, "Block")) is mode


def test_a_kernelbench_file_is_judged_in_the_mode_it_is_made_in(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    text = SOURCE.replace("Block", "Model").replace("example_inputs", "get_inputs")
    path.write_text(text)
    assert judged_mode(read_user_file(path)) is True
    path.write_text(text.replace("self.shift = shift", "self.shift = shift\n        self.inner.eval()"))
    assert judged_mode(read_user_file(path)) is True
    path.write_text(text.replace("self.shift = shift", "self.shift = shift\n        self.eval()"))
    assert judged_mode(read_user_file(path)) is False


def test_the_mark_says_where_the_generated_part_begins(written: types.ModuleType) -> None:
    text = Path(written.Block.forward.__code__.co_filename).read_text()
    own, _, generated = text.partition(MARK)
    undecorated = SOURCE.strip().replace("@register\n", "")
    assert own.strip() == undecorated.replace("class Block(", "class ReferenceBlock(").replace(
        "super(Block", "super(ReferenceBlock"
    ).replace("\n\n\nclass Bigger", "\nBlock = ReferenceBlock\n\n\nclass Bigger")
    assert "class Block(ReferenceBlock)" in generated
