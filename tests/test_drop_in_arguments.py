"""A drop-in is fast for the judged arguments, however they come, and leaves all other calls to the reference."""

from functools import partial
from pathlib import Path

import pytest
import torch

from tasks.search.survey import Survey
from tests.drop_in_builders import FACTS, imported

WITH_MASK = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x, mask=None, flag=False):
        return self.inner(x) + (0 if mask is None else mask)


def example_inputs():
    return torch.randn(3, 2, 4), torch.ones(4)
"""
PASSING = """
import functools


def passing(forward):
    @functools.wraps(forward)
    def called(self, *inputs, **named):
        return forward(self, *inputs, **named)
    return called


"""
SWAPPING = """
import functools

import torch
from torch import nn


def swapped(forward):
    @functools.wraps(forward)
    def called(self, mask, x):
        return forward(self, mask, x)
    return called


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    @swapped
    def forward(self, x, mask):
        return self.inner(x) - mask


def example_inputs():
    return torch.randn(3, 2, 4), torch.randn(3, 2, 4)
"""
IN_ORDER = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Identity()

    def forward(self, parts):
        x = torch.cat(list(parts.values()))
        return self.inner(x)


def example_inputs():
    return [{"a": torch.ones(4), "b": torch.ones(4)}]
"""
MASK = ("tensor", "float32", (4,), (1,))
MASKED = Survey(inputs=(*FACTS.inputs, MASK), named_inputs={}, constructor=None)
BY_NAME = Survey(inputs=(), named_inputs={"x": FACTS.inputs[0], "mask": MASK}, constructor=None)


@pytest.mark.parametrize("facts", [MASKED, BY_NAME], ids=["judged by position", "judged by name"])
@pytest.mark.parametrize("decorator", ["", "@torch.no_grad()", "@passing"])
def test_inputs_may_come_by_position_or_by_name(tmp_path: Path, facts: Survey, decorator: str) -> None:
    source = WITH_MASK.replace("    def forward", f"    {decorator}\n    def forward")
    module = imported(tmp_path, source.replace("class Block", f"{PASSING}class Block"), facts=facts)
    block, x, mask = module.Block().eval(), torch.randn(3, 2, 4), torch.ones(4)
    with torch.no_grad():
        wanted = 1 + block.inner(x) + mask
        for inputs, named in [((x, mask), {}), ((x,), {"mask": mask}), ((), {"mask": mask, "x": x})]:
            assert torch.equal(block(*inputs, **named), wanted)


@pytest.mark.parametrize(
    ("inputs", "names"),
    [
        pytest.param(1, "", id="one fewer"),
        pytest.param(2, "flag", id="one more"),
        pytest.param(2, "x", id="one twice"),
        pytest.param(1, "wrong", id="one that there is not"),
        pytest.param(4, "", id="too many"),
    ],
)
def test_other_arguments_than_the_judged_ones_are_the_references(tmp_path: Path, inputs: int, names: str) -> None:
    module = imported(tmp_path, WITH_MASK, facts=MASKED)
    block, outcomes = module.Block().eval(), []
    given = [torch.randn(3, 2, 4), *[torch.ones(4)] * 3][:inputs], dict.fromkeys(names.split(), True)
    for forward in (block, partial(module.ReferenceBlock.forward, block)):
        with torch.no_grad():
            try:
                outcomes.append(forward(*given[0], **given[1]))
            except TypeError as error:
                outcomes.append(str(error).replace("ReferenceBlock", "Block"))
    found, wanted = outcomes
    assert found == wanted if isinstance(wanted, str) else torch.equal(found, wanted)


def test_arguments_by_name_are_those_of_the_signature_that_callers_see(tmp_path: Path) -> None:
    module = imported(tmp_path, SWAPPING, facts=Survey(inputs=FACTS.inputs * 2, named_inputs={}, constructor=None))
    block, x, mask = module.Block().eval(), torch.randn(3, 2, 4), torch.randn(3, 2, 4)
    with torch.no_grad():
        assert torch.equal(block(x=x, mask=mask), 1 + block.inner(mask) - x)


def test_a_forward_of_which_nobody_knows_the_parameters_may_be_called_by_name(tmp_path: Path) -> None:
    source = "import functools\n" + WITH_MASK.replace("    def forward", "    @functools.lru_cache\n    def forward")
    module = imported(tmp_path, source, facts=MASKED)
    block, x, mask = module.Block().eval(), torch.randn(3, 2, 4), torch.ones(4)
    with torch.no_grad():
        assert torch.equal(block(x=x, mask=mask), block.inner(x) + mask)
        assert torch.equal(block(x, mask), 1 + block.inner(x) + mask)


def test_a_subclass_between_it_and_the_reference_gets_the_arguments_as_they_came(tmp_path: Path) -> None:
    module = imported(tmp_path, WITH_MASK, facts=MASKED)

    class Other(module.ReferenceBlock):  # type: ignore[misc, name-defined]
        def forward(self, mask: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) - mask

    class Both(module.Block, Other):  # type: ignore[misc, name-defined]
        pass

    block, x, mask = Both().eval(), torch.randn(3, 2, 4), torch.ones(4)
    with torch.no_grad():
        assert torch.equal(block(x=x, mask=mask), block.inner(x) - 1)


@torch.no_grad()
@pytest.mark.parametrize("form", ["parts", "**parts"])
def test_an_order_that_the_reference_sees_counts(tmp_path: Path, form: str) -> None:
    source, parts = IN_ORDER.replace("parts)", f"{form})"), {"a": MASK, "b": MASK}
    inputs, named = ((parts,), {}) if form == "parts" else ((), parts)
    source = source if inputs else source.replace("[{", "{").replace("}]", "}")
    module = imported(tmp_path, source, facts=Survey(inputs=inputs, named_inputs=named, constructor=None))
    block, a, b = module.Block().eval(), torch.ones(4), torch.zeros(4)
    for given, extra in (({"a": a, "b": b}, 1), ({"b": b, "a": a}, 0)):
        found = block(given) if inputs else block(**given)
        assert torch.equal(found, extra + torch.cat([*given.values()]))


@torch.no_grad()
def test_arguments_that_have_only_a_name_may_come_in_any_order(tmp_path: Path) -> None:
    source = WITH_MASK.replace("x, mask=None, flag=False", "*, x, mask=None")
    module = imported(tmp_path, source, facts=BY_NAME)
    block, x, mask = module.Block().eval(), torch.randn(3, 2, 4), torch.ones(4)
    for named in ({"x": x, "mask": mask}, {"mask": mask, "x": x}):
        assert torch.equal(block(**named), 1 + block.inner(x) + mask)
