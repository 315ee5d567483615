"""Triton kernels: what the text looks like, and that other inputs take the plain steps.

What a kernel computes is tested with a stand-in for Triton here, with Triton itself on a GPU, and by the judge.
"""

import re

import pytest
import torch

from tasks.variants.kernels.triton_text import in_triton
from tasks.variants.rewrites.triton import (
    cumulation_in_triton,
    depthwise_in_triton,
    elementwise_in_triton,
    pooling_in_triton,
    position_in_triton,
    reduction_in_triton,
)
from tasks.variants.rewrites.triton_products import product_in_triton
from tests.program_builders import defined, outputs, problem, ready, recipes_of, rewritten, rewritten_once
from tests.triton_stand_in import the_last_is_the_fastest, triton_on_the_processor, use_kernels

pytestmark = pytest.mark.usefixtures("is_capturing")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
BIASED = "self.linear = nn.Linear(size0, size0)\nself.bias = nn.Parameter(torch.rand(size0) + 0.5)"
CHAIN = problem(
    "x = self.linear(x)\nreturn F.gelu(x + self.bias) * 0.5", "torch.randn(70, 37)", init=BIASED, init_arguments="37"
)
HALVES = problem("n, _ = x.shape\na, b = x.chunk(2, dim=1)\nreturn a * torch.sigmoid(b) / n", "torch.randn(70, 74)")
LEFT_OUT = problem(
    "assert x.dim() == 2\nif mask is not None:\n    x = x * mask\nreturn torch.tanh(x * scale) * 0.5",
    "torch.randn(70, 37)",
    arguments="x, mask=None, *, scale=0.5",
)
CHANNELS = problem(
    "x = self.conv(x)\nx = F.leaky_relu(x + self.bias, 0.2)\nreturn torch.clamp(x, -1.0, 1.0)",
    "torch.randn(2, 3, 9, 9)",
    init="self.conv = nn.ConvTranspose2d(size0, 4, 3, stride=2, output_padding=1)\n"
    "self.bias = nn.Parameter(torch.randn(4, 1, 1))",
    init_arguments="3",
)
SOFTMAX = problem("return torch.softmax(x, dim=-1) * 2.0", "torch.randn(70, 300)")
LOG_SOFTMAX = problem("return torch.log_softmax(x, dim=1)", "torch.randn(4, 33, 40)")
LAYER_NORM = problem(
    "return self.norm(x) + x", "torch.randn(70, 37)", init="self.norm = nn.LayerNorm(size0)", init_arguments="37"
)
RMS_NORM = problem("return x * torch.rsqrt(torch.mean(x * x, dim=1, keepdim=True) + 1e-6)", "torch.randn(6, 19, 7, 9)")
LONG = problem("return torch.logsumexp(x, dim=1)", "torch.randn(8, 20000)")
MEAN = problem("return torch.mean((x - 1.0) ** 2)", "torch.randn(20, 30)")
SUMS = problem("x = x * 0.1\nreturn torch.cumsum(torch.abs(x), dim=1)", "torch.randn(70, 37)")
BACKWARDS = problem(
    "x = x.flip(1)\nx = torch.cumsum(x * 0.1, dim=1)\nx = x.flip(1)\nreturn x + 1.0", "torch.randn(3, 40, 70)"
)
LONG_BACKWARDS = problem(
    "x = torch.flip(x, [1])\nx = torch.cumsum(x, 1)\nreturn torch.flip(x, [1])", "torch.randn(8, 9000) * 0.01"
)
NESTED_FLIPS = problem(
    "return torch.cumsum(x.flip(self.dim), dim=self.dim).flip(self.dim)",
    "torch.randn(9, *(60, 4)) * 0.1",
    init="self.dim = size0",
    init_arguments="1",
)
PRODUCTS = problem(
    "return torch.cumprod(x, dim=self.dim)", "torch.rand(6, 900, 20) * 0.001 + 0.9995", init="self.dim = size0",
    init_arguments="1",
)  # fmt: skip
UNIT_LENGTH = problem("return x / torch.norm(x, p=2, dim=1, keepdim=True)", "torch.randn(7, 37)")
FROBENIUS = problem("return x / torch.norm(x, p='fro')", "torch.randn(7, 37)")
HINGE = problem(
    "return torch.mean(torch.clamp(1 - x * y, min=0))",
    "torch.randn(30, *(1,)), torch.randint(0, 2, (30, 1)).float() * 2 - 1",
    arguments="x, y",
)
LARGEST = problem(
    "x = torch.max(x, dim=self.dim)[0]\nreturn torch.tanh(x) + 1.0", "torch.randn(6, 19, 37)", init="self.dim = size0",
    init_arguments="1",
)  # fmt: skip
SMALLEST = problem("return torch.min(x * 2.0, dim=1, keepdim=True)[0]", "torch.randn(8, 20000)")
PLACES = problem(
    "return torch.argmax(x, dim=self.dim)", "torch.randn(6, 19, 37)", init="self.dim = size0", init_arguments="1"
)
PLACES_OF_EQUALS = problem(
    "x = x * 0.0\nreturn torch.argmin(torch.relu(x), dim=-1, keepdim=True)", "torch.randn(70, 4)"
)
PLACES_OF_ZEROS = problem("return torch.argmax(x * 0.0, dim=1)", "torch.randn(70, 4)")
PLACES_IN_LONG_ROWS = problem("return torch.argmin(torch.relu(x + 3.0), 1)", "torch.randn(8, 20000)")
PLACE_IN_A_ROW = problem("return x.argmax(0) * 2 + 1", "torch.randn(300, 1)")
POOLED = problem(
    "x = F.leaky_relu(x - self.bias, 0.1)\nx = self.pool(x)\nreturn torch.tanh(x) * 2.0",
    "torch.randn(2, 5, 19, 23)",
    init="self.pool = nn.MaxPool2d(size0, stride=2, padding=1)\nself.bias = nn.Parameter(torch.rand(5, 1, 1) + 3.0)",
    init_arguments="3",
)
DILATED = problem(
    "return self.pool(x)", "torch.randn(3, 4, 50)", init="self.pool = nn.MaxPool1d(size0, 1, 2, 3)", init_arguments="4"
)
AVERAGED = problem(
    "x = self.conv(x)\nreturn self.pool(torch.sigmoid(x))",
    "torch.randn(2, 3, 7, 9, 8)",
    init="self.conv = nn.Conv3d(size0, 4, 1)\nself.pool = nn.AvgPool3d(3, stride=2, padding=1)",
    init_arguments="3",
)
WIDE_AVERAGE = problem(
    "return self.pool(x) + 1.0", "torch.randn(2, 3, 28, 29)", init="self.pool = nn.AvgPool2d(size0)", init_arguments="7"
)
DEPTHWISE = problem(
    "x = torch.relu(x)\nreturn torch.tanh(self.conv(x)) + x.mean()",
    "torch.randn(2, 3, 19, 17)",
    init="self.conv = nn.Conv2d(size0, size0, (3, 2), stride=2, padding=(1, 0), dilation=2, groups=size0)",
    init_arguments="3",
)
DEPTHWISE_BY_WORDS = problem(
    "return self.conv(x)",
    "torch.randn(6, 3, 19, 17)",
    init="self.conv = nn.Conv2d(in_channels=size0, out_channels=size0, kernel_size=3, groups=size0)",
    init_arguments="3",
)
DEPTHWISE_VOLUMES = problem(
    "return self.conv(x)",
    "torch.randn(2, 4, 7, 9, 8)",
    init="self.conv = nn.Conv3d(size0, size0, 4, groups=size0, bias=False)",
    init_arguments="4",
)
DEPTHWISE_SERIES = problem(
    "return F.hardtanh(self.conv(x * 2.0))",
    "torch.randn(5, 6, 50)",
    init="self.conv = nn.Conv1d(size0, size0, 9, 1, 4, 1, size0)",
    init_arguments="6",
)
TWO_CHAINS = problem(
    "x = F.gelu(self.linear(x)) * 2.0\nreturn torch.tanh(self.linear(x)) + 1.0",
    "torch.randn(60, 40)",
    init="self.linear = nn.Linear(size0, size0)",
    init_arguments="40",
)
LARGE = problem("return torch.matmul(a, b)", "torch.randn(512, 512), torch.randn(512, 512)", arguments="a, b")
FITTING = [
    pytest.param(elementwise_in_triton, CHAIN, id="a bias and an activation"),
    pytest.param(elementwise_in_triton, CHANNELS, id="channels"),
    pytest.param(elementwise_in_triton, HALVES, id="halves"),
    pytest.param(elementwise_in_triton, LEFT_OUT, id="arguments left out"),
    pytest.param(reduction_in_triton, SOFTMAX, id="softmax"),
    pytest.param(reduction_in_triton, LOG_SOFTMAX, id="log-softmax over channels"),
    pytest.param(reduction_in_triton, LAYER_NORM, id="layer norm"),
    pytest.param(reduction_in_triton, RMS_NORM, id="root mean square over channels"),
    pytest.param(reduction_in_triton, LONG, id="long rows"),
    pytest.param(reduction_in_triton, MEAN, id="one number"),
    pytest.param(reduction_in_triton, UNIT_LENGTH, id="unit length"),
    pytest.param(reduction_in_triton, FROBENIUS, id="a norm of all"),
    pytest.param(reduction_in_triton, HINGE, id="a loss of labels"),
    pytest.param(reduction_in_triton, LARGEST, id="the largest over channels"),
    pytest.param(reduction_in_triton, SMALLEST, id="the smallest of long rows"),
    pytest.param(pooling_in_triton, POOLED, id="max pooling between chains"),
    pytest.param(pooling_in_triton, DILATED, id="max pooling with gaps"),
    pytest.param(pooling_in_triton, AVERAGED, id="average pooling of volumes"),
    pytest.param(pooling_in_triton, WIDE_AVERAGE, id="average pooling of many"),
    pytest.param(depthwise_in_triton, DEPTHWISE, id="each channel by itself"),
    pytest.param(depthwise_in_triton, DEPTHWISE_BY_WORDS, id="each channel, by words"),
    pytest.param(depthwise_in_triton, DEPTHWISE_VOLUMES, id="each channel of volumes"),
    pytest.param(depthwise_in_triton, DEPTHWISE_SERIES, id="each channel of series"),
    pytest.param(cumulation_in_triton, SUMS, id="cumulative sums"),
    pytest.param(cumulation_in_triton, BACKWARDS, id="backwards over channels"),
    pytest.param(cumulation_in_triton, NESTED_FLIPS, id="backwards in one expression"),
    pytest.param(cumulation_in_triton, LONG_BACKWARDS, id="backwards over long rows"),
    pytest.param(cumulation_in_triton, PRODUCTS, id="cumulative products in blocks"),
    pytest.param(position_in_triton, PLACES, id="places over channels"),
    pytest.param(position_in_triton, PLACES_OF_EQUALS, id="places of equals"),
    pytest.param(position_in_triton, PLACES_OF_ZEROS, id="places of zeros"),
    pytest.param(position_in_triton, PLACES_IN_LONG_ROWS, id="places in long rows"),
    pytest.param(position_in_triton, PLACE_IN_A_ROW, id="a place in a row"),
]


def unaligned(tensors):
    """The same numbers, four bytes further on than memory begins."""
    return [torch.cat([each.flatten()[:1], each.flatten()])[1:].view(each.shape) for each in tensors]


@pytest.mark.parametrize(("rewrite", "source"), FITTING)
def test_on_the_cpu_the_steps_that_a_kernel_replaces_run(rewrite, source):
    candidate = rewritten_once(source, rewrite)
    assert candidate is not None
    with triton_on_the_processor():
        torch.testing.assert_close(*outputs(source, candidate))
    assert defined(candidate)["kernel0"].programs_run == 0


@pytest.mark.parametrize(("rewrite", "source"), FITTING)
def test_the_shapes_that_a_kernel_is_made_for_are_those_that_come(rewrite, source):
    with triton_on_the_processor():
        names = dict(defined(rewritten_once(source, rewrite)))
    seen = []
    names["fused0"].__globals__["fits"] = lambda tensors, shapes: seen.append(
        [tuple(tensor.shape) for tensor in tensors] == list(shapes)
    )
    reference = defined(source)
    names["ModelNew"](*reference["get_init_inputs"]())(*reference["get_inputs"]())
    assert seen == [True]
    defined.cache_clear()


@pytest.mark.parametrize(("rewrite", "source"), FITTING)
def test_program_by_program_a_kernel_computes_what_its_steps_do(rewrite, source):
    with triton_on_the_processor():
        names = use_kernels(defined.__wrapped__(rewritten_once(source, rewrite)))
    torch.manual_seed(1)
    arguments, inputs = defined(source)["get_init_inputs"](), defined(source)["get_inputs"]()
    model, reference = names["ModelNew"](*arguments), defined(source)["Model"](*arguments)
    model.load_state_dict(reference.state_dict())
    holes = [each.clone() for each in inputs]
    for each in holes:
        each.view(-1)[::7], each.view(-1)[::11] = float("nan"), float("-inf")
    with torch.no_grad():
        transposed = [each.mT.contiguous().mT for each in inputs]
        for given in (inputs, [-3.0 * each for each in inputs], transposed, unaligned(inputs), holes):
            torch.testing.assert_close(model(*given), reference(*given), equal_nan=True)
    assert names["kernel0"].programs_run >= 5


def test_each_kernel_of_a_program_is_launched_for_itself():
    text = recipes_of(TWO_CHAINS)["elementwise_in_triton", "elementwise_in_triton"]
    with triton_on_the_processor():
        names = use_kernels(defined.__wrapped__(text))
    model, reference = names["ModelNew"](40), defined(TWO_CHAINS)["Model"](40)
    model.load_state_dict(reference.state_dict())
    with torch.no_grad():
        for x in torch.randn(3, 60, 40):
            torch.testing.assert_close(model(x), reference(x))
    assert len(names["LAUNCHERS"]) == 2
    assert names["kernel0"].programs_run == names["kernel1"].programs_run > 0


@pytest.mark.parametrize(
    ("rewrite", "source"),
    [(elementwise_in_triton, CHAIN), (reduction_in_triton, LAYER_NORM), (product_in_triton, LARGE)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_compiler_sees_the_steps_that_a_kernel_replaces_as_one_graph(rewrite, source):
    with triton_on_the_processor():
        names = defined.__wrapped__(rewritten_once(source, rewrite))
    model, reference, inputs = ready(source, names)
    compiled = torch.compile(names["ModelNew"].forward, backend="eager", fullgraph=True)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model, *inputs), reference(*inputs))


def test_names_of_a_forward_that_are_ours_inside_keep_their_meaning():
    source = problem(
        "return torch.relu(tensors + kernel) * 2.0 + plain",
        "torch.randn(4, 5), torch.randn(4, 5), torch.randn(4, 5)",
        arguments="tensors, kernel, plain",
    )
    with triton_on_the_processor():
        names = use_kernels(defined.__wrapped__(rewritten(source, elementwise_in_triton)))
    model, reference, inputs = ready(source, names)
    torch.testing.assert_close(model(*inputs), reference(*inputs))
    assert names["kernel0"].programs_run
    taken = source.replace("kernel", "out_shape")
    assert rewritten(taken, elementwise_in_triton) is None


def test_what_imports_the_same_as_a_kernel_gets_one_too():
    used = "self.now = functools.partial(time.monotonic)"
    source = f"import functools\nimport time\n{CHAIN}".replace(BIASED[:12], f"{used}\n        {BIASED[:12]}")
    assert used in source
    assert rewritten(source, elementwise_in_triton) is not None
    another = source.replace("import time", "time = 0.5").replace("* 0.5", "* time")
    assert rewritten(another, elementwise_in_triton) is None


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize(("rewrite", "source"), FITTING)
def test_on_a_gpu_a_kernel_computes_what_its_steps_do(rewrite, source):
    names = defined.__wrapped__(rewritten_once(source, rewrite))
    names["triton_best_ms"] = the_last_is_the_fastest
    model, reference = (
        one(*defined(source)["get_init_inputs"]()).cuda() for one in (names["ModelNew"], defined(source)["Model"])
    )
    model.load_state_dict(reference.state_dict())
    inputs = [tensor.cuda() for tensor in defined(source)["get_inputs"]()]
    with torch.no_grad():
        transposed = [each.mT.contiguous().mT for each in inputs]
        for given in (inputs, [-3.0 * each for each in inputs], transposed, unaligned(inputs), inputs):
            torch.testing.assert_close(model(*given), reference(*given))
        nothing = [torch.full_like(each, float("nan")) for each in inputs]
        torch.testing.assert_close(model(*nothing), reference(*nothing), equal_nan=True)
    assert names["FASTEST"] == {("fused", 0, 0): ["kernel"] * 2}
    inputs[0].requires_grad_()
    out = model(*inputs)
    if out.is_floating_point():
        out.sum().backward()
        assert inputs[0].grad is not None


def test_a_kernel_keeps_all_elements_of_a_row_in_registers_or_goes_over_them_in_blocks():
    short, long = rewritten_once(SOFTMAX, reduction_in_triton), rewritten_once(LONG, reduction_in_triton)
    assert short is not None
    assert long is not None
    assert "tl.arange(0, 512)[None, :]" in short
    assert "for start" not in short
    assert "for start in range(0, 20000, 4096):" in long


def test_every_load_and_store_of_more_than_one_element_is_masked():
    for rewrite, source in (case.values for case in FITTING):
        lines = re.findall(r"tl\.(?:load|store)\(.*", rewritten_once(source, rewrite) or "")
        assert lines
        assert all("mask=" in line or re.search(r"\+ 0\)", line) for line in lines)


def test_what_is_fused_is_not_seen_again_and_the_chain_before_it_is():
    recipes = recipes_of(TWO_CHAINS)
    both = ("elementwise_in_triton", "elementwise_in_triton")
    assert {(*both, "compile_and_replay"), both, (*both, "replay_as_graph")} < set(recipes)
    assert "x = fused1(h1)" in recipes[both]
    assert "return fused0(h)" in recipes[both]


@pytest.mark.parametrize(
    ("in_c", "expected"),
    [
        ("v0 * 2.0f + expf(v1 - 1e-05f)", "v0 * 2.0 + libdevice.exp(v1 - 1e-05)"),
        ("(a < b ? b : a > c ? c : a)", "(tl.where(a < b, b, tl.where(a > c, c, a)))"),
        ("(a > b || a != a ? a : b)", "(tl.where((a > b) | (a != a), a, b))"),
        ("powf(a, (b > 0.0f ? 1.0f : b))", "libdevice.pow(a, (tl.where(b > 0.0, 1.0, b)))"),
        ("(a ? b ? c : d : e)", "(tl.where(a, tl.where(b, c, d), e))"),
        ("(a > 0.0f ? NAN : INFINITY)", '(tl.where(a > 0.0, float("nan"), float("inf")))'),
    ],
)
def test_expressions_of_c_become_those_of_triton(in_c, expected):
    assert in_triton(in_c) == expected


def test_a_pooling_whose_result_is_read_twice_is_one_kernel():
    source = problem(
        "y = self.pool(x)\nreturn y * torch.sigmoid(y)", "torch.randn(2, 3, 8, 8)", init="self.pool = nn.MaxPool2d(2)"
    )
    text = rewritten(source, pooling_in_triton) or ""
    assert text.count("tl.load(") == 1
    assert "return fused0(x)" in text.replace("self, ", "")


def test_a_softmax_that_is_added_up_stays_outside_of_the_sums():
    candidate = rewritten(
        problem("return torch.cumsum(torch.softmax(x, 1), 1)", "torch.randn(4, 5)"), cumulation_in_triton
    )
    assert candidate is not None
    assert "fused0(" in candidate
