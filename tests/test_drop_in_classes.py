"""What a class of the file has, its methods and attributes, is compared too; and classes stay what they are to others.

The candidate used here adds 1 to what the reference returns, so that every output says which of the two computed it.
"""

import abc
import copy
import functools
import pickle
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.drop_in_builders import imported, is_fast

SOURCE = """
import torch
from torch import nn


class Base(nn.Module):
    offset = 0.0
    sizes = [1, 2]

    def shifted(self, x):
        return x + self.offset


class Inner(nn.Module):
    scale = 1.0

    def __init__(self):
        super().__init__()
        self.last = torch.zeros(1)

    def act(self, x):
        return torch.relu(x)

    def forward(self, x):
        return self.act(x) * self.scale


class Block(Base):
    slope = 0.1

    def shifted(self, x):
        return super(Block, self).shifted(x)
    table = torch.ones(4)
    seen = set()

    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.kept = self.act
        self.last = torch.zeros(1)

    def act(self, x):
        return x * self.slope

    @staticmethod
    def doubled(x):
        return x * 2

    @property
    def half(self):
        return 0.5

    def forward(self, x):
        return self.inner(x) + self.shifted(self.act(x)) + self.doubled(x) * self.half + len(self.sizes)


class Bigger(Block):
    def forward(self, x):
        return Block.forward(self, x) * 2


class Skipping(Block):
    def shifted(self, x):
        return super(Block, self).shifted(x) + 1


default = Block()
several = nn.Sequential(Block(), Bigger())


def example_inputs():
    return torch.randn(3, 2, 4)
"""
Change = Callable[[types.ModuleType, torch.nn.Module], object]


def other_act(self: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x * 5


class Callee:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x * 6

    def act(self, x: torch.Tensor) -> torch.Tensor:
        return x * 7


def replaced(module: torch.nn.Module, name: str, value: object) -> None:
    """Set one attribute, delete another one that nobody compares, so that there are as many as before."""
    del module.last
    setattr(module, name, value)


INSTANCE: list[object] = [
    pytest.param(lambda _, block: setattr(block, "act", types.MethodType(other_act, block)), id="a bound method"),
    pytest.param(lambda _, block: setattr(block, "act", functools.partial(other_act, block)), id="a partial"),
    pytest.param(lambda _, block: setattr(block, "act", Callee()), id="an object that can be called"),
    pytest.param(lambda _, block: setattr(block, "act", Callee().act), id="a method of another object"),
    pytest.param(lambda _, block: setattr(block, "act", lambda x: x), id="a function"),
    pytest.param(lambda _, block: setattr(block.inner, "act", functools.partial(other_act, None)), id="of a part"),
    pytest.param(lambda _, block: setattr(block, "kept", Callee()), id="one that the constructor keeps"),
    pytest.param(lambda _, block: setattr(block, "slope", torch.tensor(0.5)), id="a tensor instead of a number"),
    pytest.param(lambda _, block: replaced(block, "act", Callee()), id="one in the place of another attribute"),
    pytest.param(lambda _, block: replaced(block.inner, "act", Callee()), id="one of a part in the place of another"),
]
CLASS: list[object] = [
    pytest.param(lambda file, _: setattr(file.Block, "act", other_act), id="a method"),
    pytest.param(lambda file, _: setattr(file.ReferenceBlock, "act", other_act), id="a method of the reference"),
    pytest.param(lambda file, _: setattr(file.Base, "shifted", other_act), id="a method of a parent"),
    pytest.param(lambda file, _: setattr(file.Inner, "act", other_act), id="a method of a part"),
    pytest.param(lambda file, _: setattr(file.Inner, "forward", other_act), id="the forward of a part"),
    pytest.param(lambda file, _: setattr(file.Inner, "__call__", other_act), id="how a part is called"),
    pytest.param(lambda file, _: setattr(file.Block, "doubled", staticmethod(lambda x: x)), id="a static method"),
    pytest.param(lambda file, _: setattr(file.Block, "half", 0.25), id="a property"),
    pytest.param(lambda file, _: setattr(file.Block, "slope", 0.5), id="a number"),
    pytest.param(lambda file, _: setattr(file.ReferenceBlock, "slope", 0.5), id="a number of the reference"),
    pytest.param(lambda file, _: setattr(file.Base, "offset", 1), id="a number of a parent"),
    pytest.param(lambda file, _: setattr(file.Base, "offset", False), id="an equal one of another type"),
    pytest.param(lambda file, _: file.Base.sizes.append(3), id="a list of a parent"),
    pytest.param(lambda file, _: setattr(file.Inner, "scale", 2.0), id="a number of a part"),
    pytest.param(lambda file, _: setattr(file.Block, "table", torch.ones(4)), id="a tensor"),
    pytest.param(lambda file, _: file.Block.seen.add(1), id="a set"),
]


@pytest.fixture
def written(tmp_path: Path) -> types.ModuleType:
    return imported(tmp_path, SOURCE, marks={"return self.inner(x) +": "return 1 + self.inner(x) +"})


@pytest.mark.parametrize("change", [*INSTANCE, *CLASS])
def test_what_is_replaced_before_the_first_call_runs_as_the_reference(
    written: types.ModuleType, change: Change
) -> None:
    block = written.Block().eval()
    change(written, block)
    assert [is_fast(written, block) for _ in range(2)] == [False, False]


@pytest.mark.parametrize("change", [*INSTANCE, *CLASS])
def test_what_is_replaced_after_the_first_call_runs_as_the_reference(written: types.ModuleType, change: Change) -> None:
    block = written.Block().eval()
    assert is_fast(written, block)
    change(written, block)
    assert [is_fast(written, block) for _ in range(2)] == [False, False]


def test_it_is_fast_again_when_the_class_is_what_it_was(written: types.ModuleType) -> None:
    block = written.Block().eval()
    own = written.ReferenceBlock.act
    for act, slope, fast in ((own, 0.1, True), (other_act, 0.1, False), (own, 0.2, False), (own, 0.1, True)):
        written.ReferenceBlock.act, written.ReferenceBlock.slope = act, float(str(slope))
        assert is_fast(written, block) is fast


@torch.no_grad()
def test_what_both_classes_keep_is_one_object(tmp_path: Path) -> None:
    marks = {"return self.inner(x) +": "return 1 + self.inner(x) +"}
    file = imported(tmp_path, SOURCE.replace("x * self.slope", "x * self.table"), marks=marks)
    block = file.Block().eval()
    for first in (True, False):
        assert is_fast(file, block)
        assert file.FastBlock.table is file.ReferenceBlock.table
        if first:
            file.Block.table.mul_(3)
    file.Block.table = torch.randn(4)
    assert not is_fast(file, block)


def test_what_the_candidate_s_class_has_otherwise_stays_its_own(tmp_path: Path) -> None:
    marks = {"return self.inner(x) +": "return 1 + self.inner(x) +", "slope = 0.1": "slope = 0.2"}
    marks["x * self.slope"] = "x * self.slope / 2"
    file = imported(tmp_path, SOURCE, marks=marks)
    assert (file.ReferenceBlock.slope, file.FastBlock.slope) == (0.1, 0.2)
    assert is_fast(file, file.Block().eval())


def test_what_a_decorator_adds_to_the_class_is_what_was_judged(tmp_path: Path) -> None:
    decorator = (
        "def named(kind):\n    kind.nickname = 'b'\n    kind.also = lambda self: 3\n    return kind\n\n\n@named\n"
    )
    marks = {"return self.inner(x) +": "return 1 + self.inner(x) +"}
    file = imported(tmp_path, SOURCE.replace("class Block", f"{decorator}class Block"), marks=marks)
    assert is_fast(file, file.Block().eval())


def test_what_was_made_of_the_class_further_up_is_of_it(written: types.ModuleType) -> None:
    assert issubclass(written.Bigger, written.Block)
    assert isinstance(written.Bigger(), written.Block)
    assert type(written.default) is written.Block
    assert type(written.several[0]) is written.Block
    assert not isinstance(written.Inner(), written.Block)
    for block in (written.default, written.several):
        for other in (copy.deepcopy(block), pickle.loads(pickle.dumps(block))):
            assert type(other) is type(block)


@torch.no_grad()
def test_a_subclass_further_up_may_call_the_class_by_its_name(written: types.ModuleType) -> None:
    bigger, x = written.Bigger().eval(), torch.randn(3, 2, 4)
    assert torch.equal(bigger(x), written.ReferenceBlock.forward(bigger, x) * 2)


@torch.no_grad()
def test_a_subclass_further_up_may_skip_the_class(written: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written.ReferenceBlock, "shifted", None)
    assert torch.equal(written.Skipping().shifted(torch.ones(1)), torch.full((1,), 2.0))


def test_a_class_with_another_metaclass_may_inherit_from_it(written: types.ModuleType) -> None:
    class Mixin(abc.ABC):
        @abc.abstractmethod
        def forward(self, x: torch.Tensor) -> torch.Tensor: ...

    class Both(written.Block, Mixin):  # type: ignore[misc, name-defined]
        pass

    assert isinstance(Both(), written.Block)
    assert sys.modules["user_module"] is written


def test_a_dataclass_that_writes_no_constructor_is_made_as_it_says_itself(tmp_path: Path) -> None:
    decorator = "from dataclasses import dataclass\n\n\n@dataclass(eq=False, repr=False, init=False)\n"
    marks = {"return self.inner(x) +": "return 1 + self.inner(x) +"}
    file = imported(tmp_path, SOURCE.replace("class Block", f"{decorator}class Block"), marks=marks)
    assert is_fast(file, file.Block().eval())
