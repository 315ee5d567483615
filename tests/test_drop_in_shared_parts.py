"""Parts and weights that are one and the same when a drop-in is judged are so wherever it is fast."""

import copy
import pickle
import types
from collections.abc import Callable

import pytest
import torch

from tests.drop_in_builders import imported, is_fast

SOURCE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.again = self.first
        self.other = nn.Linear(4, 4)
        self.other.weight = self.first.weight
        self.apart = nn.Linear(4, 4)

    def forward(self, x):
        return self.apart(self.other(self.again(self.first(x))))


def example_inputs():
    return torch.randn(3, 2, 4)
"""
MARKS = {"return self.apart(": "return 1 + self.apart("}
CHANGES = [
    pytest.param(lambda block: setattr(block, "again", torch.nn.Linear(4, 4).eval()), id="another part"),
    pytest.param(lambda block: setattr(block.other, "weight", own_weight()), id="a weight of its own"),
    pytest.param(lambda block: setattr(block.first, "weight", own_weight()), id="the other one's"),
    pytest.param(lambda block: setattr(block, "apart", block.first), id="one more time the same"),
]


def own_weight() -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.randn(4, 4))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> types.ModuleType:
    return imported(tmp_path_factory.mktemp("shared"), SOURCE, marks=MARKS)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_no_longer_the_same_is_noticed(
    written: types.ModuleType, change: Callable[[torch.nn.Module], None], first: bool
) -> None:
    block = written.Block().eval()
    assert not first or is_fast(written, block)
    change(block)
    assert [is_fast(written, block) for _ in range(2)] == [False, False]


def test_copies_share_as_the_original_does(written: types.ModuleType) -> None:
    block = written.Block().eval()
    for each in (copy.deepcopy(block), pickle.loads(pickle.dumps(block)), block.to(torch.float64).to(torch.float32)):
        assert [is_fast(written, each) for _ in range(2)] == [True, True]
