"""Kernels in C compute what the reference computes, for all inputs."""

import shutil

import pytest
import torch

from tasks.variants.rewrites.kernel import (
    cumulation_in_c,
    elementwise_in_c,
    recurrence_in_c,
    reduction_in_c,
    series_in_c,
)
from tasks.variants.rewriting import Rewrite
from tests.program_builders import MATRIX, MOVING_AVERAGE, SERIES, defined, outputs, problem, rewritten

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc builds the kernels, and is not installed")

AFFINE = "self.weight = nn.Parameter(torch.rand(size0) + 0.5)\nself.bias = nn.Parameter(torch.randn(size0))"
NORM = """
mean = torch.mean(x, dim=-1, keepdim=True)
var = torch.var(x, dim=-1, keepdim=True, unbiased=False)
x = (x - mean) / torch.sqrt(var + 1e-5)
return x * self.weight + self.bias
"""
GATED = """
h = torch.zeros_like(x[:, 0])
out = []
for t in range(x.shape[1]):
    gate = torch.sigmoid(self.linear(x[:, t]))
    h = gate * h + (1.0 - gate) * x[:, t]
    out.append(h)
out = torch.stack(out, dim=1)
return out * 2.0
"""
SOFTMAX = """
x = x / 0.7
top = torch.max(x, dim=-1, keepdim=True).values
x = torch.exp(x - top)
return x / torch.sum(x, dim=-1, keepdim=True)
"""
CASES = [
    ("gelu", elementwise_in_c, problem("return F.gelu(x) + F.gelu(x, approximate='tanh')", MATRIX)),
    ("activations", elementwise_in_c, problem("return F.mish(x) - F.silu(x) * F.softplus(x) + F.hardswish(x)", MATRIX)),
    ("order of operations", elementwise_in_c, problem("return x - (x - 0.3) / (2.0 * x / (x * 5.0)) - -x", MATRIX)),
    (
        "clamp and where",
        elementwise_in_c,
        problem("return torch.where(x > 0, x.clamp(-1, 1), x.clamp(max=0.5))", MATRIX),
    ),
    (
        "attribute as number",
        elementwise_in_c,
        problem("return torch.relu(x * self.s) / x.shape[1]", MATRIX, init="self.s = size0", init_arguments="3"),
    ),
    (
        "per channel",
        elementwise_in_c,
        problem(
            "return torch.relu(F.batch_norm(x, self.weight, self.weight, self.weight, self.bias))",
            "torch.randn(3, 5, 4, 6)",
            init=AFFINE,
            init_arguments="5",
        ),
    ),
    (
        "outer sum",
        elementwise_in_c,
        problem(
            "return torch.exp(-(x[:, None] - y[None, :]).abs())", "torch.randn(9), torch.randn(7)", arguments="x, y"
        ),
    ),
    (
        "after a layer",
        elementwise_in_c,
        problem(
            "x = self.f(x)\nr = x.clone()\nreturn torch.tanh(x) * 0.5 + r",
            MATRIX,
            init="self.f = nn.Linear(size0, size0)",
            init_arguments="37",
        ),
    ),
    ("normalisation", reduction_in_c, problem(NORM, MATRIX, init=AFFINE, init_arguments="37")),
    (
        "layer norm",
        reduction_in_c,
        problem("return torch.relu(self.n(x + 1.0))", MATRIX, init="self.n = nn.LayerNorm(size0)", init_arguments="37"),
    ),
    ("softmax by hand", reduction_in_c, problem(SOFTMAX, MATRIX)),
    ("log softmax", reduction_in_c, problem("return F.log_softmax(x * 2.0, dim=1)", MATRIX)),
    (
        "softmax over the middle",
        reduction_in_c,
        problem("return torch.softmax(x * 2.0, dim=1)", "torch.randn(3, 11, 18)"),
    ),
    ("column sums", reduction_in_c, problem("return torch.sum(x * x, dim=0) + 1.0", MATRIX)),
    (
        "instance norm",
        reduction_in_c,
        problem("return x / torch.sqrt(torch.mean(x * x, dim=(2, 3), keepdim=True) + 1e-5)", "torch.randn(2, 3, 5, 6)"),
    ),
    ("extremum", reduction_in_c, problem("return torch.amax(x, dim=-1) - torch.amin(x, dim=-1)", MATRIX)),
    ("mean of all", reduction_in_c, problem("return F.smooth_l1_loss(x, y)", f"{MATRIX}, {MATRIX}", arguments="x, y")),
    ("share of the total", reduction_in_c, problem("x = torch.sigmoid(x)\nreturn x / torch.sum(x)", MATRIX)),
    ("unbiased variance", reduction_in_c, problem("return torch.var(x * 3.0, dim=1)", MATRIX)),
    (
        "pairwise distance",
        reduction_in_c,
        problem(
            "d = x[:, None, :] - y[None, :, :]\nreturn torch.sum(d * d, dim=-1)",
            "torch.randn(6, 5), torch.randn(7, 5)",
            arguments="x, y",
        ),
    ),
    ("power series", series_in_c, problem(SERIES, MATRIX)),
    ("cumulative sum", cumulation_in_c, problem("return torch.cumsum(x * 2.0, dim=1)", MATRIX)),
    (
        "backwards",
        cumulation_in_c,
        problem("x = x.flip(0)\nx = torch.cumsum(x, 0)\nx = torch.flip(x, dims=[0])\nreturn x", MATRIX),
    ),
    ("cumulative product", cumulation_in_c, problem("return torch.cumprod(x, dim=0)", MATRIX)),
    ("moving average", recurrence_in_c, problem(MOVING_AVERAGE, MATRIX)),
    ("moving average of vectors", recurrence_in_c, problem(MOVING_AVERAGE, "torch.randn(4, 9, 17)")),
    (
        "gated recurrence",
        recurrence_in_c,
        problem(GATED, "torch.randn(3, 8, 6)", init="self.linear = nn.Linear(size0, size0)", init_arguments="6"),
    ),
]
SOURCES = pytest.mark.parametrize(
    ("rewrite", "source"), [case[1:] for case in CASES], ids=[case[0].replace(" ", "-") for case in CASES]
)


def candidate_of(source: str, rewrite: Rewrite) -> str:
    candidate = rewritten(source, rewrite)
    assert candidate is not None, "the rewrite does not apply"
    assert "ctypes" in candidate
    return candidate


@needs_gcc
@SOURCES
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_a_kernel_agrees_with_the_reference(rewrite: Rewrite, source: str, scale: float) -> None:
    torch.manual_seed(5)
    inputs = [tensor * scale for tensor in _inputs(source)]
    expected, found = outputs(source, candidate_of(source, rewrite), inputs=inputs)
    torch.testing.assert_close(found, expected, rtol=2e-5, atol=2e-6 * float(expected.abs().max()))


@needs_gcc
@SOURCES
def test_inputs_may_lie_in_memory_as_they_like(rewrite: Rewrite, source: str) -> None:
    inputs = [tensor.transpose(0, -1).contiguous().transpose(0, -1) for tensor in _inputs(source)]
    expected, found = outputs(source, candidate_of(source, rewrite), inputs=inputs)
    torch.testing.assert_close(found, expected, rtol=2e-5, atol=2e-6 * float(expected.abs().max()))
    assert found.is_contiguous()


@needs_gcc
@SOURCES
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinities_go_where_they_go_in_torch(rewrite: Rewrite, source: str, value: float) -> None:
    if "gelu" in source and value == float("inf"):
        pytest.skip("torch's own vectorised gelu of infinity is NaN; ours is infinity")
    inputs = _inputs(source)
    inputs[0].flatten()[3] = value
    expected, found = outputs(source, candidate_of(source, rewrite), inputs=inputs)
    torch.testing.assert_close(found, expected, rtol=2e-5, atol=1e-5, equal_nan=True)


@needs_gcc
def test_weights_are_read_at_every_call() -> None:
    source = {name: text for name, _, text in CASES}["normalisation"]
    model = defined(candidate_of(source, reduction_in_c))["ModelNew"](37)
    x = torch.randn(20, 37)
    with torch.no_grad():
        before = model(x)
        model.bias += 1.0
        torch.testing.assert_close(model(x), before + 1.0)


@needs_gcc
def test_results_of_earlier_calls_stay_as_they_are() -> None:
    candidate = candidate_of(problem("return torch.relu(x) * 2.0", MATRIX), elementwise_in_c)
    model = defined(candidate)["ModelNew"]()
    first = model(torch.ones(4, 4))
    model(torch.zeros(4, 4))
    assert torch.equal(first, torch.full((4, 4), 2.0))


def test_the_builder_is_the_same_text_in_all_candidates() -> None:
    builders = set()
    for _, rewrite, source in CASES:
        candidate = candidate_of(source, rewrite)
        builders.add(candidate[candidate.index("def build") : candidate.index("run = build(")])
    assert len(builders) == 1


OTHER_METHOD = """
    def {name}(self):
        {body}


def get_inputs():"""


@pytest.mark.parametrize(
    ("name", "body", "is_written"),
    [
        pytest.param("extra_repr", "return 'hello'", True, id="that nothing calls"),
        pytest.param("scale", "return 2.0", False, id="that forward calls"),
        pytest.param("set_scale", "self.s = 3", False, id="that sets an attribute"),
        pytest.param("to", "return self", False, id="that a judge may call"),
        pytest.param("__call__", "return 1", False, id="that Python calls"),
    ],
)
def test_a_class_may_have_other_methods(name: str, body: str, is_written: bool) -> None:
    called = "self.scale()" if name == "scale" else "2.0"
    source = problem(f"return torch.relu(x * {called}) / 3.0", MATRIX, init="self.s = size0", init_arguments="3")
    source = source.replace("\n\ndef get_inputs():", OTHER_METHOD.format(name=name, body=body), 1)
    found = rewritten(source, elementwise_in_c)
    assert (found is not None) is is_written


def test_a_candidate_keeps_the_layers_it_does_not_replace() -> None:
    source = {name: text for name, _, text in CASES}["after a layer"]
    forward = candidate_of(source, elementwise_in_c).split("def forward")[1]
    assert "self.f(x)" in forward
    assert "tanh" not in forward


def _inputs(source: str) -> list[torch.Tensor]:
    torch.manual_seed(3)
    return defined(source)["get_inputs"]()
