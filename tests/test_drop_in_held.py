"""What functions in attributes hold is compared at every call, and classes that keep values in slots get no drop-in."""

import types
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tasks.errors import RecordError
from tests.drop_in_builders import imported, is_fast

SOURCE = """
import functools

import torch
from torch import nn


def scaled(scales):
    def scale(x):
        return x * scales[0]
    return scale


def counted(start):
    def shift(x):
        return x + start

    def move(to):
        nonlocal start
        start = to
    shift.move = move
    return shift


def halved(x, by=[2.0], *, least={"value": 0.0}):
    return (x / by[0]).clamp(min=least["value"])


def added(x, more):
    return x + more[0]


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = scaled([2.0])

    def forward(self, x):
        return self.scale(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.scale = scaled([2.0])
        self.shift = counted(1.0)
        self.half = halved
        self.add = functools.partial(added, more=[1.0])
        self.method = self.act

    def act(self, x):
        return x

    def forward(self, x):
        return self.inner(x) + self.add(self.method(self.half(self.shift(self.scale(x)))))


def example_inputs():
    return torch.randn(3, 2, 4)
"""
CHANGES = [
    pytest.param(lambda block: held(block.scale, 3.0), id="a list in a closure"),
    pytest.param(lambda block: held(block.inner.scale, 3.0), id="a list in a closure of a part"),
    pytest.param(lambda block: block.shift.move(5.0), id="a number in a closure"),
    pytest.param(lambda block: block.half.__defaults__[0].append(4.0), id="a list that is a default"),
    pytest.param(lambda block: block.half.__kwdefaults__["least"].update(value=1.0), id="a mapping that is a default"),
    pytest.param(lambda block: setattr(block.half, "__defaults__", ([4.0],)), id="other defaults"),
    pytest.param(
        lambda block: setattr(block.half, "__kwdefaults__", {"least": {"value": 1.0}}), id="other ones by name"
    ),
    pytest.param(lambda block: setattr(block.add.func, "__defaults__", (3.0,)), id="other defaults in a partial"),
    pytest.param(lambda block: block.add.keywords["more"].append(1.0), id="a list in a partial"),
    pytest.param(lambda block: block.add.keywords.update(more=[2.0]), id="another list in a partial"),
]


def held(function: types.FunctionType, value: float) -> None:
    assert function.__closure__ is not None
    function.__closure__[0].cell_contents[0] = value


@pytest.fixture
def written(tmp_path: Path) -> types.ModuleType:
    return imported(tmp_path, SOURCE, marks={"return self.inner(x) +": "return 1 + self.inner(x) +"})


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_what_a_function_holds_may_not_change(
    written: types.ModuleType, change: Callable[[torch.nn.Module], object], first: bool
) -> None:
    block = written.Block()
    assert not first or is_fast(written, block)
    change(block)
    assert [is_fast(written, block) for _ in range(2)] == [False, False]


def test_it_is_fast_again_when_a_function_holds_what_it_held(written: types.ModuleType) -> None:
    block = written.Block()
    for value, fast in ((2.0, True), (3.0, False), (2.0, True)):
        held(block.scale, value)
        assert is_fast(written, block) is fast
    for value, fast in ((float("4.0"), False), (float("1.0"), True)):
        block.shift.move(value)
        assert is_fast(written, block) is fast


@pytest.mark.parametrize("kind", ["Block", "Inner"])
def test_a_class_that_keeps_values_in_slots_gets_no_drop_in(tmp_path: Path, kind: str) -> None:
    source = SOURCE.replace(f"class {kind}(nn.Module):\n", f"class {kind}(nn.Module):\n    __slots__ = ('power',)\n\n")
    with pytest.raises(RecordError, match="__slots__ that cannot be compared"):
        imported(tmp_path, source)


def test_a_class_with_no_slots_but_the_usual_mapping_gets_one(tmp_path: Path) -> None:
    source = SOURCE.replace("class Inner(nn.Module):\n", "class Inner(nn.Module):\n    __slots__ = ()\n\n")
    marks = {"return self.inner(x) +": "return 1 + self.inner(x) +"}
    written = imported(tmp_path, source, marks=marks)
    assert is_fast(written, written.Block())
