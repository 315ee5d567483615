"""A part whose constructor runs again, or whose state is set again, is another part to a drop-in."""

import copy
import types
from collections.abc import Callable

import pytest
import torch

from tests.drop_in_builders import imported, is_fast

SOURCE = """
import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self, slope=0.1, size=4):
        super().__init__()
        self.leaky = nn.LeakyReLU(slope)
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return self.leaky(x) * self.weight.sum()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x)


def example_inputs():
    return torch.randn(3, 2, 4)
"""
Change = Callable[[torch.nn.Module], object]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> types.ModuleType:
    return imported(tmp_path_factory.mktemp("again"), SOURCE)


@pytest.mark.parametrize(
    ("change", "fast"),
    [
        pytest.param(lambda inner: inner.__init__(), True, id="as it was"),
        pytest.param(lambda inner: inner.__init__(0.9), False, id="with another number for a part of it"),
        pytest.param(lambda inner: inner.__init__(size=5), False, id="with weights of another shape"),
        pytest.param(lambda inner: inner.__setstate__(type(inner)(0.9).__getstate__()), False, id="another state"),
        pytest.param(
            lambda inner: inner.__setstate__(copy.deepcopy(inner).__getstate__()), True, id="the state of a copy"
        ),
    ],
)
def test_a_part_that_is_made_again_after_the_first_call_is_looked_at_again(
    written: types.ModuleType, change: Change, fast: bool
) -> None:
    block = written.Block()
    assert is_fast(written, block)
    change(block.inner)
    block.eval()
    assert [is_fast(written, block) for _ in range(2)] == [fast, fast]


def test_a_part_that_has_no_parts_any_more_fails_as_the_own_forward_does(written: types.ModuleType) -> None:
    block, x = written.Block(), torch.ones(3, 2, 4)
    assert is_fast(written, block)
    torch.nn.Module.__init__(block.inner)
    for forward in (block, lambda given: written.ReferenceBlock.forward(block, given)):
        with pytest.raises(AttributeError, match="has no attribute 'leaky'"), torch.no_grad():
            forward(x)
