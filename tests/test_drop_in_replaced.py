"""Parts, parameters and buffers may be replaced with the mapping that has them, or be put into another order."""

import types
from collections.abc import Callable

import pytest
import torch
from torch import nn

from tests.drop_in_builders import imported, is_fast

SOURCE = """
import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"a": nn.LeakyReLU(0.1), "b": nn.Linear(4, 4), "c": nn.LeakyReLU(0.2)})
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("shift", torch.ones(4))
        self.scales = {"first": 1.0, "second": 2.0}

    def forward(self, x):
        for layer in self.layers.values():
            x = layer(x)
        return x * self.weight + self.shift + [*self.scales.values()][0]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("table", torch.ones(4))

    def forward(self, x):
        return self.inner(x) * self.scale + self.table


def example_inputs():
    return torch.randn(3, 2, 4)
"""
MARKS = {"return self.inner(x) *": "return 1 + self.inner(x) *"}
Change = Callable[[nn.Module], object]


def put_last(layers: nn.ModuleDict, name: str, new_name: str) -> None:
    layers[new_name] = layers.pop(name)


def other(**changes: object) -> Change:
    """Replaces the mapping of parts, parameters or buffers of a module by one that differs."""

    def change(module: nn.Module) -> None:
        for name, more in changes.items():
            setattr(module, name, {**getattr(module, name), **dict([more])})  # type: ignore[list-item]

    return change


def of_inner(change: Change) -> Change:
    return lambda block: change(block.get_submodule("inner"))


WIDER = torch.ones(1, 4)
CHANGES = [
    pytest.param(other(_modules=("inner", nn.Tanh())), id="parts"),
    pytest.param(other(_parameters=("scale", nn.Parameter(WIDER))), id="parameters"),
    pytest.param(other(_buffers=("table", WIDER)), id="buffers"),
    pytest.param(of_inner(other(_modules=("layers", nn.ModuleDict({"a": nn.Tanh()})))), id="parts of a part"),
    pytest.param(of_inner(other(_parameters=("weight", nn.Parameter(WIDER)))), id="parameters of a part"),
    pytest.param(of_inner(other(_buffers=("shift", WIDER))), id="buffers of a part"),
    pytest.param(lambda block: other(_modules=("a", nn.LeakyReLU(0.9)))(block.inner.layers), id="parts of a mapping"),
    pytest.param(
        lambda block: setattr(block.inner, "layers", nn.ModuleDict({"a": nn.Tanh()})), id="a mapping of parts"
    ),
    pytest.param(lambda block: put_last(block.inner.layers, "a", "a"), id="the order of parts"),
    pytest.param(lambda block: put_last(block.inner.layers, "c", "d"), id="the name of a part"),
    pytest.param(lambda block: setattr(block.inner, "scales", {"first": 3.0}), id="a plain mapping"),
    pytest.param(
        lambda block: setattr(block.inner, "scales", {"second": 2.0, "first": 1.0}), id="the order of a plain mapping"
    ),
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> types.ModuleType:
    return imported(tmp_path_factory.mktemp("replaced"), SOURCE, marks=MARKS)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_in_another_mapping_is_noticed(written: types.ModuleType, change: Change, first: bool) -> None:
    block = written.Block()
    assert not first or is_fast(written, block)
    change(block)
    assert [is_fast(written, block) for _ in range(2)] == [False, False]


@pytest.mark.parametrize("name", ["_modules", "_parameters", "_buffers"])
def test_another_mapping_of_the_same_changes_nothing(written: types.ModuleType, name: str) -> None:
    block = written.Block()
    assert is_fast(written, block)
    for each in (block, block.inner):
        setattr(each, name, dict(getattr(each, name)))
    assert [is_fast(written, block) for _ in range(2)] == [True, True]


def test_what_is_put_into_order_again_is_fast_again(written: types.ModuleType) -> None:
    block = written.Block()
    assert is_fast(written, block)
    for name, fast in (("a", False), ("b", False), ("c", True)):
        put_last(block.inner.layers, name, name)
        assert is_fast(written, block) is fast
