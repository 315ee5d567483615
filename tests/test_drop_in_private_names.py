"""Private names mean in a drop-in what they mean in the user's class, though two classes there have other names."""

import types
from pathlib import Path

import libcst as cst
import pytest
import torch

from tasks.search.names import spelt_out
from tests.drop_in_builders import imported

SOURCE = """
import torch
from torch import nn


class Other:
    def __init__(self):
        self.__gain = 7


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Identity()
        self.__linear = nn.Linear(4, 4)
        self.__gain = torch.ones(4)
        self.__shift = nn.Parameter(torch.zeros(4))

    def set_gain(self, gain):
        self.__gain = gain

    def __scaled(self, x):
        return self.__linear(x) * self.__gain + self.__shift

    def forward(self, x):
        return self.inner(x) + self.__scaled(x)


def example_inputs():
    return torch.randn(3, 2, 4)
"""
PRIVATE = """
class _Own:
    __count: int = 1
    text = "__count"

    def __one(self, __a, *, __b=2, **__c):
        import __library as __short
        global __table
        self.__x, other.__y, __table = __a, f"{__b}", lambda __d: __d
        __free(self.__init__, __name__, __z=1)
        match self:
            case Other(__w=1):
                del self.__x

    class Inner(__Base):
        def two(self):
            return self.__x

    class __Hidden:
        def three(self):
            return self.__x
"""


@pytest.fixture
def written(tmp_path: Path) -> types.ModuleType:
    return imported(tmp_path, SOURCE)


def names_of(code: types.CodeType) -> list[object]:
    """All names that a compiled text uses, in order, but for those of its functions."""
    parts = [names_of(each) for each in code.co_consts if isinstance(each, types.CodeType)]
    return [code.co_names, code.co_varnames, code.co_freevars, parts]


def test_names_are_spelt_out_as_the_compiler_does() -> None:
    module = cst.parse_module(PRIVATE)
    (statement,) = module.body
    assert isinstance(statement, cst.ClassDef)
    changed = spelt_out(statement, "_Own").with_changes(name=cst.Name("Renamed"))
    texts = PRIVATE, module.with_changes(body=[changed]).code.replace("Renamed", "_Own", 1)
    found, wanted = (names_of(compile(text, "text", "exec")) for text in texts)
    assert found == wanted
    assert "_Own__x" in module.code_for_node(changed)


def test_other_classes_keep_their_own(written: types.ModuleType) -> None:
    assert vars(written.Other()) == {"_Other__gain": 7}


def test_the_state_dict_has_the_names_of_the_class(written: types.ModuleType) -> None:
    assert list(written.Block().state_dict()) == ["_Block__shift", "_Block__linear.weight", "_Block__linear.bias"]


@torch.no_grad()
@pytest.mark.parametrize("first", [True, False])
def test_what_a_setter_sets_is_what_the_fast_code_reads(written: types.ModuleType, first: bool) -> None:
    block, x = written.Block().eval(), torch.randn(3, 2, 4)
    for gain in (torch.ones(4), torch.full((4,), 3.0)) if first else (torch.full((4,), 3.0),):
        block.set_gain(gain)
        assert torch.allclose(block(x), 1 + written.ReferenceBlock.forward(block, x), atol=1e-5)
    assert torch.equal(vars(block)["_Block__gain"], torch.full((4,), 3.0))
