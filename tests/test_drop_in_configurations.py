"""What a module keeps of a configuration is compared: when it is made, and at every call."""

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.drop_in_builders import imported, is_fast

SOURCE = """
import functools
import types
from dataclasses import dataclass, field
from enum import Enum

import torch
from torch import nn


class Act(Enum):
    RELU = "relu"
    TANH = "tanh"


@dataclass
class Noise:
    share: float = 0.5


@dataclass
class Config:
    scale: float = 2.0
    act: Act = Act.RELU
    shifts: list = field(default_factory=lambda: [1.0])
    noise: Noise = field(default_factory=Noise)
    folder: str = "/here"
    activation: object = torch.relu

    @functools.cached_property
    def twice(self):
        return 2 * self.scale


class Inner(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config

    def forward(self, x):
        return x * self.config.twice + self.config.shifts[0] + self.config.noise.share


class Block(nn.Module):
    def __init__(self, config=None, plain=None):
        super().__init__()
        self.config = config or Config()
        self.plain = plain or types.SimpleNamespace(width=3)
        self.inner = Inner(self.config)
        self.unlike = Unlike()

    def forward(self, x):
        x = self.inner(x)
        return (self.config.activation(x) if self.config.act is Act.RELU else torch.tanh(x))


class Unlike:
    def __init__(self):
        self.seen = object()
        self.itself = self


def example_inputs():
    return torch.randn(3, 2, 4)
"""


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda module: module.Config(scale=3.0), id="a number"),
        pytest.param(lambda module: module.Config(act=module.Act.TANH), id="a member"),
        pytest.param(lambda module: module.Config(shifts=[2.0]), id="a list"),
        pytest.param(lambda module: module.Config(noise=module.Noise(0.25)), id="an object within"),
        pytest.param(lambda module: module.Config(activation=torch.abs), id="a function"),
    ],
)
def test_a_module_with_another_configuration_runs_its_own_forward(made: Callable, tmp_path: Path) -> None:
    module = imported(tmp_path, SOURCE, marks={"return (self": "return 1 + (self"})
    assert is_fast(module, module.Block().eval())
    assert is_fast(module, module.Block(module.Config()).eval())
    assert is_fast(module, module.Block(module.Config(folder="/there")).eval())
    assert not is_fast(module, module.Block(made(module)).eval())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda block: setattr(block.config, "scale", 3.0), id="a number"),
        pytest.param(lambda block: block.config.shifts.append(2.0), id="a list"),
        pytest.param(lambda block: setattr(block.config.noise, "share", 0.25), id="an object within"),
        pytest.param(lambda block: setattr(block.config, "more", 1), id="a new one"),
        pytest.param(lambda block: setattr(block.plain, "width", 4), id="a namespace"),
        pytest.param(lambda block: setattr(block, "config", type(block.config)(scale=3.0)), id="all of it"),
        pytest.param(lambda block: setattr(block.inner, "config", type(block.config)(scale=3.0)), id="a part's"),
    ],
)
def test_a_change_in_a_configuration_is_noticed_at_the_next_call(change: Callable, tmp_path: Path) -> None:
    module = imported(tmp_path, SOURCE, marks={"return (self": "return 1 + (self"})
    block = module.Block().eval()
    assert all(is_fast(module, block) for _ in range(3))
    change(block)
    assert [is_fast(module, block) for _ in range(2)] == [False, False]


def test_a_copy_has_a_configuration_of_its_own(tmp_path: Path) -> None:
    module = imported(tmp_path, SOURCE, marks={"return (self": "return 1 + (self"})
    block = module.Block().eval()
    assert is_fast(module, block)
    copied, equal = copy.deepcopy(block), copy.deepcopy(block.config)
    assert is_fast(module, copied)
    block.config.scale = 3.0
    assert is_fast(module, copied)
    copied.config = copied.inner.config = equal
    assert is_fast(module, copied), "an equal one will do"


def test_a_property_that_is_kept_at_its_first_use_is_no_change(tmp_path: Path) -> None:
    module = imported(tmp_path, SOURCE, marks={"return (self": "return 1 + (self"})
    block = module.Block().eval()
    assert "twice" not in vars(block.config)
    with torch.no_grad():
        module.ReferenceBlock.forward(block, torch.randn(3, 2, 4))
    assert "twice" in vars(block.config)
    assert all(is_fast(module, block) for _ in range(2))
