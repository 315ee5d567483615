"""Matrix products in Triton: which are taken, and that they are right tile by tile."""

import copy

import pytest
import torch

from tasks.variants.rewrites import triton_products
from tasks.variants.rewrites.triton_products import product_in_triton
from tests.program_builders import defined, outputs, problem, ready, recipes_of, rewritten
from tests.triton_stand_in import split_in_three, triton_on_the_processor, use_kernels

pytestmark = pytest.mark.usefixtures("is_capturing")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
TWO = "torch.randn(141, 83), torch.randn(83, 70)"
SQUARES = problem("return torch.matmul(a, b)", TWO, arguments="a, b")
OPERATOR = problem("return torch.triu(a @ b) * 2.0", "torch.randn(80, 80), torch.randn(80, 80)", arguments="a, b")
BOTH_TRANSPOSED = problem("return torch.mm(a.T, b.t())", "torch.randn(83, 141), torch.randn(70, 83)", arguments="a, b")
LINEAR = problem(
    "x = torch.relu(self.linear(x))\nreturn x - 1.0",
    "torch.randn(2, 70, 53)",
    init="self.linear = nn.Linear(size0, 70)",
    init_arguments="53",
)
OF_TRANSPOSE = problem(
    "return self.linear(x.T)",
    "torch.randn(70, 70)",
    init="self.linear = nn.Linear(size0, size0)",
    init_arguments="70",
)
NO_BIAS = problem(
    "return self.linear(x)",
    "torch.randn(141, 53)",
    init="self.linear = nn.Linear(size0, 70, bias=False)",
    init_arguments="53",
)
BATCHES = problem(
    "return torch.bmm(a, b.transpose(1, 2))", "torch.randn(3, 70, 41), torch.randn(3, 90, 41)", arguments="a, b"
)
BY_ONE = problem("return torch.matmul(a, b)", "torch.randn(3, 40, 41), torch.randn(41, 70)", arguments="a, b")
PARTS = problem(
    "a, b = self.linear(x).chunk(2, dim=1)\nreturn a * b",
    "torch.randn(141, 53)",
    init="self.linear = nn.Linear(size0, 70)",
    init_arguments="53",
)
ROWS = problem("a, b = x @ y\nreturn a * b", "torch.randn(2, 70, 53), torch.randn(53, 70)", arguments="x, y")
NARROW = problem("return torch.matmul(a, b)", "torch.randn(70, 53), torch.randn(53, 16)", arguments="a, b")
DEEP = problem("return torch.matmul(a, b)", "torch.randn(128, 8192), torch.randn(8192, 128)", arguments="a, b")
FITTING = [
    pytest.param(SQUARES, id="matrices"),
    pytest.param(OPERATOR, id="an operator within an expression"),
    pytest.param(BOTH_TRANSPOSED, id="both transposed"),
    pytest.param(LINEAR, id="a layer with a bias"),
    pytest.param(OF_TRANSPOSE, id="a layer of a transpose"),
    pytest.param(NO_BIAS, id="a layer without one"),
    pytest.param(BATCHES, id="batches"),
    pytest.param(BY_ONE, id="a batch by one matrix"),
    pytest.param(ROWS, id="of several at once, which are taken apart"),
    pytest.param(PARTS, id="taken apart afterwards"),
    pytest.param(NARROW, id="sixteen columns"),
]


@pytest.fixture
def small_are_worth_it(monkeypatch):
    monkeypatch.setattr(triton_products, "LEAST_MULTIPLICATIONS", 1)


def in_the_stand_in(source):
    with triton_on_the_processor():
        return use_kernels(defined.__wrapped__(rewritten(source, product_in_triton)))


@pytest.mark.usefixtures("small_are_worth_it")
@pytest.mark.parametrize("source", FITTING)
def test_on_the_cpu_the_product_itself_runs(source):
    with triton_on_the_processor():
        candidate = rewritten(source, product_in_triton)
        assert candidate is not None
        torch.testing.assert_close(*outputs(source, candidate), rtol=0, atol=0)


@pytest.mark.usefixtures("small_are_worth_it")
@pytest.mark.parametrize("source", FITTING)
def test_with_every_tile_the_kernel_computes_the_product(source):
    names = in_the_stand_in(source)
    model, reference, inputs = ready(source, names)
    tiles = names["TILES"]
    with torch.no_grad():
        for tile in (*tiles, split_in_three(tiles[1]), split_in_three(tiles[-1])):
            names["FASTEST"][0, -1] = [tile] * 2
            torch.testing.assert_close(model(*inputs), reference(*inputs), rtol=1e-4, atol=1e-4)
        holes = [each.clone() for each in inputs]
        for each in holes:
            each.view(-1)[::97], each.view(-1)[::101] = float("nan"), float("-inf")
        lying_otherwise = [each.mT.contiguous().mT for each in inputs]
        for tile in tiles[0], tiles[-1]:
            names["FASTEST"][0, -1] = [tile] * 2
            torch.testing.assert_close(model(*holes), reference(*holes), rtol=1e-4, atol=1e-4, equal_nan=True)
            torch.testing.assert_close(model(*lying_otherwise), reference(*inputs), rtol=1e-4, atol=1e-4)
    assert names["product_kernel0"].programs_run
    assert names["apart_product0"].programs_run


@pytest.mark.usefixtures("small_are_worth_it")
@pytest.mark.parametrize("source", [SQUARES, BOTH_TRANSPOSED], ids=["as they lie", "transposed"])
def test_numbers_of_different_sizes_are_taken_apart_without_loss(source):
    names = in_the_stand_in(source)
    model, reference, inputs = ready(source, names)
    names["FASTEST"][0, -1] = [names["TILES"][-1]] * 2
    for size in (1.0, 1e-20, 1e10):
        spread = [each * torch.exp(4.0 * torch.randn_like(each)) * size for each in inputs]
        doubles = [each.double() for each in spread]
        allowed = reference(*[each.abs() for each in doubles])
        with torch.no_grad():
            worst = ((model(*spread).double() - reference(*doubles)).abs() / allowed).max()
        assert worst < 1e-6


@pytest.mark.usefixtures("small_are_worth_it")
def test_a_large_number_that_meets_a_zero_costs_those_beside_it_nothing():
    names = in_the_stand_in(SQUARES)
    model, reference, (a, b) = ready(SQUARES, names)
    names["FASTEST"][0, -1] = [names["TILES"][-1]] * 2
    a[:, 0], b[0, :] = 2.0**28, 0.0
    allowed = reference(a.double().abs(), b.double().abs())
    assert ((model(a, b).double() - reference(a.double(), b.double())).abs() / allowed).max() < 1e-6


@pytest.mark.usefixtures("small_are_worth_it")
def test_each_product_of_a_program_has_a_kernel_of_its_own():
    source = problem(
        "x = self.first(x)\nx = F.gelu(x) * 0.5\nreturn self.second(x)",
        "torch.randn(70, 52)",
        init="self.first = nn.Linear(size0, 64)\nself.second = nn.Linear(64, size0)",
        init_arguments="52",
    )
    recipes = recipes_of(source)
    text = recipes["elementwise_in_triton", "product_in_triton", "product_in_triton"]
    assert ("elementwise_in_triton", "product_in_triton", "product_in_triton", "replay_as_graph") in recipes
    with triton_on_the_processor():
        names = use_kernels(defined.__wrapped__(text))
    model, reference, inputs = ready(source, names)
    with torch.no_grad():
        torch.testing.assert_close(model(*inputs), reference(*inputs))
    kernels = [names[name] for name in ("product_kernel0", "product_kernel1", "kernel0")]
    assert all(each.programs_run for each in kernels)


@pytest.mark.usefixtures("small_are_worth_it")
@pytest.mark.parametrize(
    "forward",
    [
        "return self.first(x) + self.second(x * 2.0)",
        "product0 = self.first(x)\nreturn self.second(torch.relu(self.first(product0)))",
        "multiplied = x + 1.0\nreturn torch.relu(self.first(multiplied)) * multiplied",
    ],
    ids=["side by side", "a name of ours", "another name of ours"],
)
def test_names_that_a_forward_has_keep_their_meaning(forward):
    init = "self.first = nn.Linear(size0, size0)\nself.second = nn.Linear(size0, size0)"
    source = problem(forward, "torch.randn(70, 52)", init=init, init_arguments="52")
    text = next(text for recipe, text in recipes_of(source).items() if recipe[-1] == "product_in_triton")
    with triton_on_the_processor():
        names = use_kernels(defined.__wrapped__(text))
    model, reference, inputs = ready(source, names)
    with torch.no_grad():
        torch.testing.assert_close(model(*inputs), reference(*inputs))


def test_a_function_of_the_users_own_says_nothing_by_its_arguments():
    resize = "def resize(x, out_shape=(512, 512)):\n    return x if len(x) > 9 else F.interpolate(x, size=out_shape)"
    source = problem(
        "return torch.matmul(resize(a), b)", "torch.randn(512, 512), torch.randn(512, 512)", arguments="a, b"
    )
    assert rewritten(source.replace("class Model", f"{resize}\n\n\nclass Model"), product_in_triton) is None


@pytest.mark.parametrize(
    ("forward", "inputs"),
    [
        ("return torch.matmul(a, b)", "torch.randn(64, 64), torch.randn(64, 64)"),
        ("return torch.matmul(a, b)", "torch.randn(8, 4096), torch.randn(4096, 4096)"),
        ("return torch.matmul(a, b)", "torch.randn(4096, 4096), torch.randn(4096)"),
        ("return torch.matmul(a, b)", "torch.randn(512, 512).double(), torch.randn(512, 512).double()"),
        ("return torch.matmul(a, b)", "torch.randn(4, 512, 512), torch.randn(1, 512, 512)"),
        ("return torch.matmul(a.mT, b)", "torch.randn(4, 512, 512), torch.randn(512, 512)"),
        ("return torch.matmul(a.permute(2, 1, 0), b)", "torch.randn(512, 512, 4), torch.randn(4, 512, 512)"),
        ("return torch.matmul(a, b, out=a)", "torch.randn(512, 512), torch.randn(512, 512)"),
        ("return torch.stack([torch.mm(a, b) for _ in range(2)])", "torch.randn(512, 512), torch.randn(512, 512)"),
        ("return a @ b", "torch.randn(40000, 40000), torch.randn(40000, 40000)"),
        ("return a @ b if self.training else a", "torch.randn(512, 512), torch.randn(512, 512)"),
        ("return torch.cat([(a := torch.relu(a)), a @ b])", "torch.randn(512, 512), torch.randn(512, 512)"),
    ],
    ids=[
        "a small one",
        "few rows",
        "a vector",
        "doubles",
        "a batch that is spread",
        "a batch of transposes by one matrix",
        "dimensions in another order",
        "into memory given",
        "in a comprehension",
        "too many elements",
        "on a condition",
        "behind another name",
    ],
)
def test_what_no_kernel_is_for_stays(forward, inputs):
    assert rewritten(problem(forward, inputs, arguments="a, b"), product_in_triton) is None


def test_a_program_that_has_other_things_by_the_names_of_the_helpers_is_left_alone():
    taken = SQUARES.replace("class Model", "def multiply(a, b):\n    return a * b\n\n\nclass Model")
    assert (
        rewritten(taken.replace("torch.matmul(a, b)", "torch.matmul(a, b) + multiply(1, 2)"), product_in_triton) is None
    )


@pytest.mark.gpu
@needs_gpu
@pytest.mark.usefixtures("small_are_worth_it")
@pytest.mark.parametrize("source", [*FITTING, pytest.param(DEEP, id="many terms")])
def test_on_a_gpu_every_tile_is_about_as_exact_as_float32(source):
    names = defined.__wrapped__(rewritten(source, product_in_triton))
    model, reference, inputs = ready(source, names)
    model, reference, exact = model.cuda(), reference.cuda(), copy.deepcopy(reference).cuda().double()
    inputs = [each.cuda() for each in inputs]
    with torch.no_grad():
        truth = exact(*[each.double() for each in inputs])
        own = (reference(*inputs).double() - truth).square().mean().sqrt()
        tiles = names["TILES"]
        for tile in (*tiles, split_in_three(tiles[1]), split_in_three(tiles[-1])):
            names["FASTEST"][0, 0] = [tile] * 2
            error = (model(*inputs).double() - truth).square().mean().sqrt()
            assert error < 4 * own
        for each in inputs:
            each.view(-1)[::97], each.view(-1)[::101] = float("nan"), float("-inf")
        for tile in names["TILES"][0], names["TILES"][-1]:
            names["FASTEST"][0, 0] = [tile] * 2
            torch.testing.assert_close(model(*inputs), reference(*inputs), rtol=1e-3, atol=1e-3, equal_nan=True)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.usefixtures("small_are_worth_it")
def test_on_a_gpu_the_fastest_tile_is_found_and_gradients_take_the_product_itself():
    names = defined.__wrapped__(rewritten(LINEAR, product_in_triton))
    model, reference, inputs = ready(LINEAR, names)
    model, reference, x = model.cuda(), reference.cuda(), inputs[0].cuda()
    with torch.no_grad():
        torch.testing.assert_close(model(x), reference(x), rtol=1e-4, atol=1e-4)
    assert (0, 0) in names["FASTEST"]
    model(x).sum().backward()
    assert model.linear.weight.grad is not None
