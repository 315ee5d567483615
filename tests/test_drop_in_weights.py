"""A weight that is of another kind than when it was judged is seen at the next call, whatever torch can be asked."""

import types
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.drop_in_builders import imported

SOURCE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x):
        return self.inner(x) + self.shift


def example_inputs():
    return torch.randn(3, 2, 4)
"""
MARKS = {"return self.inner(x) + self.shift": "return 1 + self.inner(x) + self.shift"}


@pytest.fixture
def module(tmp_path: Path) -> types.ModuleType:
    return imported(tmp_path, SOURCE, marks=MARKS)


def is_fast(block: nn.Module) -> bool:
    """Whether the output is the candidate's, which is larger by one."""
    x = torch.randn(3, 2, 4)
    with torch.no_grad():
        found, usual = block(x), nn.functional.linear(x, block.inner.weight, block.inner.bias) + block.shift
    difference = (found - usual).mean().round().item()
    assert difference in (0, 1)
    return difference == 1


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.t().contiguous().t()


CHANGES: dict[str, Callable[[nn.Module], object]] = {
    "strides": lambda block: setattr(block.inner.weight, "data", transposed(block.inner.weight.data)),
    "another one's strides": lambda block: setattr(block.inner, "weight", nn.Parameter(transposed(torch.ones(4, 4)))),
    "shape": lambda block: setattr(block, "shift", torch.ones(1, 4)),
    "none": lambda block: setattr(block.inner, "bias", None),
    "subclass": lambda block: setattr(block, "shift", torch.ones(4).as_subclass(type("Own", (torch.Tensor,), {}))),
}
HARMLESS: dict[str, Callable[[nn.Module], object]] = {
    "values": lambda block: block.inner.weight.data.mul_(2),
    "storage": lambda block: setattr(block.inner.weight, "data", block.inner.weight.data.clone()),
    "another one": lambda block: setattr(block.inner, "weight", nn.Parameter(torch.ones(4, 4))),
    "frozen": lambda block: block.requires_grad_(False),
    "frozen and not": lambda block: block.requires_grad_(False).requires_grad_(True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_weight_of_another_kind_leads_to_the_users_forward_until_it_is_as_it_was(
    module: types.ModuleType, change: str
) -> None:
    block = module.Block().eval()
    before = {**block.inner._parameters, **block._buffers}
    data = {name: each.data for name, each in before.items()}
    assert is_fast(block)
    assert is_fast(block)
    CHANGES[change](block)
    assert not is_fast(block)
    assert not is_fast(block)
    for name, tensor in before.items():
        tensor.data = data[name]
        setattr(block if name == "shift" else block.inner, name, tensor)
    assert is_fast(block)


@pytest.mark.parametrize("change", HARMLESS)
def test_one_that_differs_in_what_was_not_judged_does_not(module: types.ModuleType, change: str) -> None:
    block = module.Block().eval()
    assert is_fast(block)
    HARMLESS[change](block)
    assert is_fast(block)
    assert is_fast(block)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_one_is_no_end_of_the_process(module: types.ModuleType) -> None:
    block, x = module.Block().eval(), torch.randn(3, 2, 4)
    assert is_fast(block)
    block.shift = torch.nested.nested_tensor([torch.ones(2, 4)] * 3)
    with torch.no_grad():
        found = block(torch.nested.nested_tensor([*x]))  # which alone would lead to the user's forward
        assert torch.allclose(found.to_padded_tensor(0.0), block.inner(x) + 1)
        with pytest.raises(RuntimeError):  # by the user's forward: the input is as judged
            block(x)
    block.shift = torch.ones(4)
    assert is_fast(block)


def test_both_modes_of_tensors_without_gradients_are_fast_in_turns(module: types.ModuleType) -> None:
    block = module.Block().eval()
    for _ in range(3):
        assert is_fast(block)
        with torch.inference_mode():
            assert is_fast(block)


def test_a_release_of_torch_that_cannot_be_asked_for_all_at_once_sees_the_same(
    module: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(torch._C._dynamo.guards, "TensorGuards")
    block = module.Block().eval()
    assert is_fast(block)
    CHANGES["strides"](block)
    assert not is_fast(block)
