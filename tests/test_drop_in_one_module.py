"""To its fast code a module is one object for as long as it lives, as to its own, and is freed as before."""

import copy
import gc
import types
import weakref
from pathlib import Path

import pytest
import torch

from tests.drop_in_builders import imported

SOURCE = """
import torch
from torch import nn

ENDED = []


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def __del__(self):
        ENDED.append(type(self).__name__)

    def forward(self, x):
        return self.inner(x)


def example_inputs():
    return torch.randn(3, 2, 4)
"""
KEEPING = {
    "import torch\n": "import functools\nimport weakref\n\nimport torch\n\nKEPT = weakref.WeakKeyDictionary()\n",
    "return self.inner(x)": "KEPT.setdefault(self, []).append(1)\n        return 1 + self.inner(x)",
}
MADE_OTHERWISE = {"        self.inner = nn.Linear": "        self.more = 1\n        self.inner = nn.Linear"}


@pytest.fixture(params=[{}, MADE_OTHERWISE], ids=["made alike", "made otherwise"])
def written(tmp_path: Path, request: pytest.FixtureRequest) -> types.ModuleType:
    """A candidate that keeps what it has made by the module, as a captured graph is kept."""
    return imported(tmp_path, SOURCE, marks={**KEEPING, **request.param})


@torch.no_grad()
def call(block: torch.nn.Module, times: int = 1) -> None:
    x = torch.randn(3, 2, 4)
    for _ in range(times):
        assert torch.equal(block(x), 1 + block.inner(x))  # type: ignore[operator]


def test_what_is_kept_by_the_module_is_found_again_at_every_call(written: types.ModuleType) -> None:
    block, other = written.Block(), written.Block()
    call(block, 3)
    call(other, 2)
    assert sorted(map(len, written.KEPT.values())) == [2, 3]


@pytest.mark.usefixtures("without_collector")
def test_what_is_kept_by_the_module_is_freed_with_it(written: types.ModuleType) -> None:
    block = written.Block()
    call(block, 2)
    seen = weakref.ref(block), weakref.ref(block.inner.weight)
    del block
    assert [each() for each in seen] == [None, None]
    assert not written.KEPT


def test_a_module_that_holds_itself_is_left_to_the_collector(written: types.ModuleType) -> None:
    block = written.Block()
    block.inner.held_by = [block]
    call(block, 2)
    seen = weakref.ref(block)
    del block
    gc.collect()
    assert seen() is None
    assert not written.KEPT


def test_a_copy_is_another_one(written: types.ModuleType) -> None:
    block = written.Block()
    call(block)
    copied = copy.deepcopy(block)
    copied.inner.weight.data.add_(1)
    call(copied)
    call(block)
    assert sorted(map(len, written.KEPT.values())) == [1, 2]


def test_attributes_may_be_another_mapping(written: types.ModuleType) -> None:
    block = written.Block()
    call(block)
    inner = torch.nn.Linear(4, 4)
    block.__dict__ = {**vars(block), "_modules": {"inner": inner}}
    call(block)
    assert block.inner is inner


def test_its_end_is_noticed_once_when_it_is_freed(written: types.ModuleType) -> None:
    block = written.Block()
    call(block, 3)
    assert written.ENDED == []
    del block
    gc.collect()
    assert written.ENDED == ["Block"]
