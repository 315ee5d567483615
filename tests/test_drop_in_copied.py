"""What a constructor was given is given to the fast form's as it was, whatever kind of list or mapping it is.

The candidate used here remembers in its constructor what it was given, and adds it to what the reference returns.
"""

import collections
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
import torch

from tests.drop_in_builders import imported

SOURCE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, config, takes=False):
        super().__init__()
        self.inner = nn.Identity()
        if takes:
            config.pop("scale", 0)

    def forward(self, x):
        return self.inner(x)


def example_init():
    return [{"scale": [1.0]}]


def example_inputs():
    return torch.randn(3, 2, 4)
"""
MARKS = {
    "        if takes": "        self.first = (config['scale'] if 'scale' in config else [9.0])[0]\n        if takes",
    "return self.inner(x)": "return self.first + self.inner(x)",
}
OF_A_TUPLE = {**MARKS, "        if takes": "        self.first = config.scale[0]\n        if takes"}


class Config(NamedTuple):
    scale: list[float]


class Attributes(dict[str, Any]):
    """A mapping with more methods, and attributes of its own."""


class Uncopied(dict[str, Any]):
    """A mapping that lets nobody copy it."""

    def __copy__(self) -> "Uncopied":
        raise TypeError("there is but one")


class Frozen(dict[str, Any]):
    """A mapping that is its own copy, since nobody may change it."""

    def __copy__(self) -> "Frozen":
        return self


KINDS: dict[str, Callable[[], Any]] = {
    "a mapping": lambda: {"scale": [1.0]},
    "one that was ordered": lambda: collections.OrderedDict(scale=[1.0]),
    "one with defaults": lambda: collections.defaultdict(list, scale=[1.0]),
    "one that counts": lambda: collections.Counter(cast("Any", {"scale": [1.0]})),
    "one of another class": lambda: Attributes(scale=[1.0]),
}
CHANGES: dict[str, Callable[[Any], object]] = {
    "an item": lambda config: config.__setitem__("scale", [5.0]),
    "what an item has": lambda config: config["scale"].__setitem__(0, 5.0),
    "an item less": lambda config: config.pop("scale"),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> types.ModuleType:
    return imported(tmp_path_factory.mktemp("copied"), SOURCE, marks=MARKS)


@torch.no_grad()
def added(block: torch.nn.Module) -> float:
    """What a call adds to its input: nothing where it was the reference's."""
    x = torch.zeros(3, 2, 4)
    return float(block(x).mean())


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_changes_after_the_constructor_is_not_seen(written: types.ModuleType, kind: str, change: str) -> None:
    config = KINDS[kind]()
    block = written.Block(config).eval()
    CHANGES[change](config)
    assert added(block) == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_constructor_takes_out_is_there_again(written: types.ModuleType, kind: str) -> None:
    assert added(written.Block(KINDS[kind](), takes=True).eval()) == 1.0


def test_what_an_item_of_a_tuple_with_names_has_is_not_seen_to_change(tmp_path: Path) -> None:
    source = SOURCE.replace('[{"scale": [1.0]}]', '[__import__("types").SimpleNamespace(scale=[1.0])]')
    config = Config([1.0])
    block = imported(tmp_path, source, marks=OF_A_TUPLE).Block(config).eval()
    config.scale[0] = 5.0
    assert added(block) == 1.0


def test_a_mapping_that_is_its_own_copy_stays_what_it_was(written: types.ModuleType) -> None:
    scale = [1.0]
    config = Frozen(scale=scale)
    assert added(written.Block(config).eval()) == 1.0
    assert config["scale"] is scale


def test_a_mapping_that_cannot_be_copied_makes_a_module_that_warns(written: types.ModuleType) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        block = written.Block(Uncopied(scale=[1.0])).eval()
    with pytest.warns(UserWarning, match="cannot be copied: there is but one"):
        assert added(block) == 0.0
    assert added(block) == 0.0
