"""A weight that is of another kind than when it was judged is seen at the next call, whatever torch can be asked."""

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
        with pytest.raises(RuntimeError, match="Expected both self and other to be nested"):  # by the user's forward
            block(x)
    block.shift = torch.ones(4)
    assert is_fast(block)


class Silent(torch.Tensor):
    """Says nothing of itself, but can be computed with."""

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], _: Any, arguments: tuple[Any, ...] = (), named: dict[str, Any] | None = None
    ) -> Any:
        if function.__name__ == "__get__":
            raise RuntimeError("this is not to be known")
        plain = [each.as_subclass(torch.Tensor) if type(each) is cls else each for each in arguments]
        return function(*plain, **(named or {}))


@torch.no_grad()
def test_one_that_says_nothing_of_itself_leads_to_the_users_forward(module: types.ModuleType) -> None:
    block, x = module.Block().eval(), torch.randn(3, 2, 4)
    assert is_fast(block)
    block._buffers["shift"] = torch.ones(4).as_subclass(Silent)
    for _ in range(2):
        assert torch.equal(block(x), block.inner(x) + 1)
    block._buffers["shift"] = torch.ones(4)
    assert is_fast(block)


@pytest.mark.parametrize("is_tied", [True, False])
def test_weights_that_become_one_or_two_lead_to_the_users_forward(tmp_path: Path, is_tied: bool) -> None:
    source = SOURCE.replace("self.inner =", "self.other = nn.Linear(4, 4)\n        self.inner =")
    if is_tied:
        source = source.replace("self.register", "self.other.weight = self.inner.weight\n        self.register")
    block = imported(tmp_path, source, marks=MARKS).Block().eval()
    assert is_fast(block)
    for tied in (is_tied, not is_tied, is_tied, not is_tied, is_tied):
        block.other.weight = block.inner.weight if tied else nn.Parameter(block.inner.weight.clone())
        assert [is_fast(block) for _ in range(2)] == [tied is is_tied] * 2


def test_torch_is_asked_for_all_at_once_where_a_weight_is_in_two_places_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SOURCE.replace('self.register_buffer("shift", ', "self.shift = self.inner.bias = nn.Parameter(")
    block, asked = imported(tmp_path, source, marks=MARKS).Block().eval(), []
    assert is_fast(block)
    assert is_fast(block)
    monkeypatch.setattr(type(block._fast.seen), "_are_still", lambda *_: asked.append(1))
    assert is_fast(block)
    assert not asked


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
