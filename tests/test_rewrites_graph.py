"""Compiled candidates compute what the reference computes, and keep its constructor and parameters."""

import pytest
import torch

from tasks.variants.rewrites.graph import compile_forward, compile_forward_static, compile_forward_whole, compile_tail
from tasks.variants.rewriting import Rewrite
from tests.program_builders import outputs, problem, rewritten

LAYERS = "self.linear = nn.Linear(size0, size0)\nself.weight = nn.Parameter(torch.rand(size0) + 0.5)"
TAIL = problem(
    "x = self.linear(x)\nresidual = x.clone()\nx = torch.relu(x * self.weight)\nreturn x + residual",
    "torch.randn(6, 8)",
    init=LAYERS,
    init_arguments="8",
)


@pytest.mark.parametrize(
    ("rewrite", "form"),
    [
        (compile_forward, "    @torch.compile\n    def forward"),
        (compile_forward_static, "    @torch.compile(dynamic=False)\n    def forward"),
        (compile_forward_whole, "    @torch.compile(fullgraph=True)\n    def forward"),
        (compile_tail, "@torch.compile\ndef tail(x, weight):"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_each_form_is_written_as_people_write_it(rewrite: Rewrite, form: str) -> None:
    candidate = rewritten(TAIL, rewrite)
    assert candidate is not None
    assert form in candidate


@pytest.mark.slow
@pytest.mark.parametrize("rewrite", [compile_forward, compile_tail], ids=["forward", "tail"])
def test_a_compiled_candidate_agrees_with_the_reference(rewrite: Rewrite) -> None:
    candidate = rewritten(TAIL, rewrite)
    assert candidate is not None
    torch.testing.assert_close(*outputs(TAIL, candidate))


def test_the_tail_takes_only_what_follows_the_last_product() -> None:
    candidate = rewritten(TAIL, compile_tail)
    assert candidate is not None
    tail, forward = candidate.split("class ModelNew")
    assert "self" not in tail
    assert "return tail(x, self.weight)" in forward
    assert "x = self.linear(x)" in forward


@pytest.mark.parametrize("rewrite", [compile_forward, compile_forward_whole, compile_tail], ids=lambda r: r.name)
def test_what_is_compiled_is_not_compiled_again(rewrite: Rewrite) -> None:
    compiled = TAIL.replace("    def forward", "    @torch.compile\n    def forward")
    assert rewritten(compiled, rewrite) is None


@pytest.mark.parametrize(
    "forward",
    [
        "return self.linear(x)",
        "x = torch.relu(x)\nreturn x * self.weight",
        "x = self.linear(x)\nx.mul_(2.0)\nreturn x",
        "x = self.linear(x)\nif x.sum() > 0:\n    x = x * 2.0\nreturn x",
        "x = self.linear(x)\nx = x * 2.0\nreturn x, self.linear(x)",
        "weight = self.linear(x)\nx = x * weight\nreturn x * self.weight",
    ],
    ids=["nothing follows", "no product", "in place", "branch", "ends with a product", "names clash"],
)
def test_a_tail_that_cannot_be_cut_off_stays(forward: str) -> None:
    source = problem(forward, "torch.randn(6, 8)", init=LAYERS, init_arguments="8")
    assert rewritten(source, compile_tail) is None
