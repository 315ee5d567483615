"""Inputs that share memory lead to the user's forward where that writes to them, unless they were judged so."""

from pathlib import Path

import pytest
import torch

from tasks.search.survey import Survey
from tests.drop_in_builders import FACTS, imported

SOURCE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ReLU(True)

    def forward(self, x, skip):
        return self.inner(x) + skip


def example_inputs():
    return [torch.randn(3, 2, 4), torch.randn(3, 2, 4)]
"""
BOTH = Survey(inputs=FACTS.inputs * 2, named_inputs={}, constructor=None)
NESTED = Survey(inputs=([FACTS.inputs[0]], FACTS.inputs[0]), named_inputs={}, constructor=None)
BY_NAME = Survey(inputs=(), named_inputs={"x": FACTS.inputs[0], "skip": FACTS.inputs[0]}, constructor=None)
COPYING = {"return self.inner(x) + skip": "result = 1 + torch.relu(x) + skip\n        x.relu_()\n        return result"}
PURE = SOURCE.replace("nn.ReLU(True)", "nn.ReLU()")
WAYS_TO_WRITE = {
    "in place": SOURCE,
    "at a place": PURE.replace("return self.inner(x)", "x[0] = 1\n        return self.inner(x)"),
    "past the version": PURE.replace("return self.inner(x)", "x.data.mul_(2)\n        return self.inner(x)"),
    "as an array": PURE.replace("return self.inner(x)", "x.numpy()[0] = 1\n        return self.inner(x)"),
}
ANSWER = {"return self.inner(x) + skip": "return 1 + self.inner(x) + skip"}


@torch.no_grad()
def outputs_of(block: torch.nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Of a call with a tensor twice, and of one with a tensor and another view of it; and what is left of both."""
    whole, flat = x.clone(), x.clone()
    return block(whole, whole), block(flat, flat.view_as(flat)), whole, flat


@pytest.mark.parametrize("way", WAYS_TO_WRITE)
def test_a_tensor_given_twice_leads_to_a_forward_that_writes_to_it(tmp_path: Path, way: str) -> None:
    marks = COPYING if way == "in place" else ANSWER
    module = imported(tmp_path, WAYS_TO_WRITE[way], facts=BOTH, marks=marks)
    block, reference, x = module.Block().eval(), module.ReferenceBlock().eval(), torch.randn(3, 2, 4)
    for found, wanted in zip(outputs_of(block, x), outputs_of(reference, x), strict=True):
        assert torch.equal(found, wanted)
    with torch.no_grad():
        assert torch.allclose(block(x.clone(), x.clone()), 1 + reference(x.clone(), x.clone()))


@pytest.mark.parametrize("facts", [NESTED, BY_NAME], ids=["in a list", "by name"])
def test_it_may_be_anywhere_among_the_arguments(tmp_path: Path, facts: Survey) -> None:
    source = SOURCE
    if facts is NESTED:
        source = source.replace("[torch.randn(3, 2, 4), ", "[[torch.randn(3, 2, 4)], ").replace(
            "inner(x)", "inner(x[0])"
        )
    marks = {"return self.inner(": "return 1 + self.inner("}
    block = imported(tmp_path, source, facts=facts, marks=marks).Block().eval()
    with torch.no_grad():
        for x, skip, extra in ((torch.ones(3, 2, 4), torch.ones(3, 2, 4), 1), (*[torch.ones(3, 2, 4)] * 2, 0)):
            found = block([x], skip) if facts is NESTED else block(x=x, skip=skip)
            assert torch.equal(found, torch.full((3, 2, 4), 2.0 + extra))


@torch.no_grad()
@pytest.mark.parametrize(("step", "extra"), [(24, 1), (30, 1), (23, 0), (4, 0), (0, 0)])
def test_parts_of_one_memory_may_be_given_where_they_lie_apart(tmp_path: Path, step: int, extra: int) -> None:
    marks = {"return self.inner(": "return 1 + self.inner("}
    block = imported(tmp_path, SOURCE, facts=BOTH, marks=marks).Block().eval()
    for first, second in ((0, step), (step, 0)):
        memory = torch.ones(100)
        x, skip = (memory[place:].as_strided((3, 2, 4), (8, 4, 1)) for place in (first, second))
        assert torch.equal(block(x, skip), torch.full((3, 2, 4), 2.0 + extra))


@torch.no_grad()
def test_one_without_memory_of_its_own_leads_to_the_users_forward(tmp_path: Path) -> None:
    marks = {"return self.inner(": "return 1 + self.inner("}
    block, kept = imported(tmp_path, SOURCE, facts=BOTH, marks=marks).Block().eval(), []
    torch.func.grad(lambda x: (kept.append(x), x.sum())[1])(torch.ones(3, 2, 4))  # what it leaves behind
    assert torch.equal(block(torch.ones(3, 2, 4), *kept), torch.full((3, 2, 4), 2.0))


@torch.no_grad()
@pytest.mark.parametrize(("source", "extra"), [(SOURCE, 0), (PURE, 1)], ids=["written to", "read"])
def test_the_example_may_be_of_inference_mode(tmp_path: Path, source: str, extra: int) -> None:
    source = source.replace("    return [torch", "    with torch.inference_mode():\n        return [torch")
    marks = {"return self.inner(": "return 1 + self.inner("}
    block, x = imported(tmp_path, source, facts=BOTH, marks=marks).Block().eval(), torch.ones(3, 2, 4)
    assert torch.equal(block(x.clone(), x.clone()), torch.full((3, 2, 4), 3.0))
    assert torch.equal(block(x, x), torch.full((3, 2, 4), 2.0 + extra))


def test_a_forward_that_only_reads_is_fast_for_one_tensor_twice(tmp_path: Path) -> None:
    block, x = imported(tmp_path, PURE, facts=BOTH, marks=ANSWER).Block().eval(), torch.randn(3, 2, 4)
    with torch.no_grad():
        assert torch.equal(block(x, x), 1 + torch.relu(x) + x)


@torch.no_grad()
def test_one_that_was_judged_with_one_tensor_twice_is_fast_for_such_alone(tmp_path: Path) -> None:
    source = PURE.replace("return [torch", "x = torch").replace(", torch.randn(3, 2, 4)]", "\n    return x, x")
    block = imported(tmp_path, source, facts=BOTH, marks=ANSWER).Block().eval()
    x, many = torch.randn(3, 2, 4), torch.randn(2, 3, 2, 4)
    assert torch.equal(block(x, x), 1 + torch.relu(x) + x)
    assert torch.equal(block(x, skip=x.view_as(x)), 1 + torch.relu(x) + x)
    for given in ((x, x.clone()), many.unbind()):
        assert torch.equal(block(*given), torch.relu(given[0]) + given[1])
