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
from enum import Enum, Flag

import torch
from torch import nn


class Act(Enum):
    RELU = "relu"
    TANH = "tanh"


@dataclass
class Noise:
    share: float = 0.5


class Slope:
    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x + self.by


class Mode(Flag):
    FIRST, SECOND, THIRD = 1, 2, 4


@dataclass
class Config:
    mode: Mode = Mode.FIRST | Mode.SECOND
    scale: float = 2.0
    act: Act = Act.RELU
    shifts: list = field(default_factory=lambda: [1.0])
    noise: Noise = field(default_factory=Noise)
    folder: str = "/here"
    activation: object = torch.relu
    stages: list = field(default_factory=lambda: [Noise(1.0)])
    functions: dict = field(default_factory=lambda: {"relu": torch.relu})
    slope: object = field(default_factory=lambda: Slope(0.0))

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
        x = self.config.slope(self.config.functions["relu"](x))
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
        pytest.param(lambda module: module.Config(stages=[module.Noise(2.0)]), id="an object in a list"),
        pytest.param(lambda module: module.Config(functions={"relu": torch.abs}), id="a function in a mapping"),
        pytest.param(lambda module: module.Config(slope=module.Slope(1.0)), id="an object that is called"),
        pytest.param(lambda module: module.Config(mode=module.Mode(5)), id="flags"),
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
        pytest.param(lambda block: setattr(block.config.stages[0], "share", 2.0), id="an object in a list"),
        pytest.param(lambda block: block.config.stages.append(block.config.noise), id="one more object in a list"),
        pytest.param(lambda block: block.config.functions.update(relu=torch.abs), id="a function in a mapping"),
        pytest.param(lambda block: setattr(block.config.slope, "by", 1.0), id="an object that is called"),
        pytest.param(
            lambda block: setattr(block.config, "__dict__", {**vars(block.config), "scale": 3.0}), id="its mapping"
        ),
        pytest.param(lambda block: setattr(block.config, "__class__", type("Other", (), {})), id="its class"),
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
