"""Rewrites know all parameters of a forward: by position, by keyword only, and those that take what is left."""

import libcst as cst
import pytest
import torch

from tasks.variants.rewrites.forward import find_method, parameters_of, positional_parameters_of
from tasks.variants.rewrites.graph import compile_tail
from tasks.variants.rewrites.overwriting import work_in_place, work_in_place_everywhere
from tasks.variants.rewriting import Rewrite
from tests.program_builders import MATRIX, defined, problem, program_of, rewritten


@pytest.mark.parametrize(
    ("arguments", "positional", "every"),
    [
        pytest.param("x, y=1", ["x", "y"], ["x", "y"], id="usual"),
        pytest.param("x, /, y", ["x", "y"], ["x", "y"], id="by position only"),
        pytest.param("x, *, scale=1.0", ["x"], ["x", "scale"], id="by keyword only"),
        pytest.param("x, *more, scale, **rest", ["x"], ["x", "more", "scale", "rest"], id="what is left"),
    ],
)
def test_parameters_are_those_without_self(arguments: str, positional: list[str], every: list[str]) -> None:
    forward = find_method(program_of(problem("return x", MATRIX, arguments=arguments)), "forward")
    assert forward is not None
    assert positional_parameters_of(forward) == positional
    assert parameters_of(forward) == every


LINEAR = "self.linear = nn.Linear(size0, size0)"


def test_what_is_compiled_apart_is_given_arguments_that_come_by_keyword() -> None:
    source = problem(
        "h = self.linear(x)\ng = torch.sigmoid(h * scale)\nreturn g * h + more[0]",
        "torch.randn(8, 4)",
        arguments="x, *more, scale=2.0",
        init=LINEAR,
        init_arguments="4",
    )
    found = rewritten(source, compile_tail)
    assert found is not None
    (tail,) = [each for each in cst.parse_module(found).body if isinstance(each, cst.FunctionDef)]
    assert {each.name.value for each in tail.params.params} == {"h", "scale", "more"}


@pytest.mark.parametrize("rewrite", [work_in_place, work_in_place_everywhere], ids=lambda each: each.name)
def test_no_tensor_that_comes_by_keyword_is_overwritten(rewrite: Rewrite) -> None:
    source = problem(
        "y = x + bias\nbias = bias * 2.0\nz = torch.relu(bias)\nreturn y * z", MATRIX, arguments="x, *, bias"
    )
    found = rewritten(source, rewrite)
    if found is None:
        return
    model = defined(found)["ModelNew"]()
    x, bias = torch.randn(20, 37), torch.randn(37)
    kept, expected = bias.clone(), (x + bias) * torch.relu(bias * 2.0)
    assert torch.allclose(model(x, bias=bias), expected)
    assert torch.equal(bias, kept)
