"""What a `cached_property` of a module keeps counts like any other attribute that the first call sets."""

from pathlib import Path

import torch

from tasks.search.foreseen import fast_once
from tasks.search.user_file import read_user_file
from tests.drop_in_builders import FACTS, imported, is_fast

SOURCE = """import functools

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    @functools.cached_property
    def size(self):
        return len(self.weight)

    def forward(self, x):
        return self.weight * x * self.size


def example_inputs():
    return torch.randn(3, 2, 4)
"""


def test_it_stays_fast(tmp_path: Path) -> None:
    module = imported(tmp_path, SOURCE)
    block = module.Block().eval()
    assert is_fast(module, block)
    assert vars(block)["size"] == 4
    assert all(is_fast(module, block) for _ in range(3))


def test_a_value_that_is_set_instead_is_the_one_that_counts(tmp_path: Path) -> None:
    module = imported(tmp_path, SOURCE)
    block = module.Block().eval()
    x = torch.randn(3, 2, 4)
    with torch.no_grad():
        block(x)
        block.size = 7
        extra = block(x) - 7 * x
    assert extra.std() < 1e-5
    assert "size" not in vars(module.Block())


def test_nothing_is_said_of_it_before_the_search(tmp_path: Path) -> None:
    path = tmp_path / "block.py"
    path.write_text(SOURCE)
    assert fast_once(read_user_file(path), FACTS) is None
    path.write_text(SOURCE.replace("return self.weight * x", "self.extra_repr = 1\n        return self.weight * x"))
    assert "a call of Block changes extra_repr, after which" in (fast_once(read_user_file(path), FACTS) or "")
