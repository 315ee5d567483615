"""Convolutions in Triton: which are taken, and that they are right tile by tile, whatever the geometry."""

import copy
import random

import pytest
import torch

from tasks.variants.rewrites import triton_convolutions, triton_products
from tasks.variants.rewrites.triton_convolutions import convolution_in_triton
from tasks.variants.rewriting import as_candidate_program
from tests.program_builders import defined, outputs, problem, ready, recipes_of, rewritten
from tests.triton_stand_in import split_in_three, triton_on_the_processor, use_kernels

pytestmark = pytest.mark.usefixtures("is_capturing")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def convolving(layer, inputs, *, forward="return self.conv(x)"):
    return problem(forward, f"torch.randn({inputs})", init=f"self.conv = nn.{layer}", init_arguments="40")


PICTURES = convolving(
    "Conv2d(size0, 70, 3, stride=2, padding=1)", "2, 40, 19, 22", forward="return torch.relu(self.conv(x))"
)
UNEVEN = convolving("Conv2d(size0, 20, (3, 5), (1, 2), (2, 1), (2, 1), bias=False)", "2, 40, 15, 21")
POINTS_OF_COLOURS = convolving("Conv2d(size0, 64, 1, bias=False)", "2, 3, 19, 13").replace("[40]", "[3]")
POINTS = convolving("Conv2d(size0, 70, 1)", "3, 40, 9, 11")
SERIES = convolving("Conv1d(size0, 30, 4, stride=3, padding=2, dilation=2)", "3, 40, 130")
VOLUMES = convolving("Conv3d(size0, 18, (2, 3, 1), padding=(1, 0, 0), stride=(1, 2, 1))", "2, 40, 5, 9, 6")
TRANSPOSED = convolving("ConvTranspose2d(size0, 70, 3, padding=1)", "2, 40, 9, 11")
TRANSPOSED_FAR = convolving("ConvTranspose1d(size0, 20, 4, dilation=2, padding=1)", "3, 40, 90")
TRANSPOSED_IN_PHASES = convolving(
    "ConvTranspose2d(size0, 33, (3, 5), stride=2, padding=(1, 2), output_padding=(1, 0), bias=False)", "1, 40, 12, 13"
)
TRANSPOSED_VOLUMES = convolving("ConvTranspose3d(size0, 18, (2, 4, 3), (1, 2, 3), (0, 1, 1), 0, 1)", "2, 40, 4, 6, 7")
TRANSPOSED_WITH_GAPS = convolving(
    "ConvTranspose2d(size0, 33, (3, 4), (5, 4), (1, 2), 0, 1, True, (2, 6))", "1, 40, 9, 10"
)
TRANSPOSED_TO_EVEN_PLACES = convolving(
    "ConvTranspose3d(size0, 18, 3, stride=2, padding=1, dilation=2)", "1, 40, 3, 5, 5"
)
SIXTEEN = convolving("Conv2d(size0, 16, 3, padding=1)", "1, 40, 10, 12")
GROUPS = convolving("Conv2d(size0, 60, (3, 2), (1, 2), (1, 0), groups=2)", "2, 40, 11, 12")
TRANSPOSED_GROUPS = convolving(
    "ConvTranspose2d(size0, 64, (3, 5), stride=(2, 3), padding=(1, 2), dilation=(2, 1), groups=4)", "1, 40, 8, 9"
)
TRANSPOSED_FEW_CHANNELS = convolving("ConvTranspose2d(size0, 33, 4, stride=2)", "2, 8, 12, 13").replace("[40]", "[8]")
FEW_CHANNELS = problem(
    "x = self.conv(x)\nreturn x * 2.0",
    "torch.randn(2, 3, 30, 31)",
    init="self.conv = nn.Conv2d(size0, 33, kernel_size=5, stride=(2, 1), padding=(2, 0))",
    init_arguments="3",
)
MANY_CHANNELS = problem(
    "x = x * torch.exp(2.0 * scale)\nreturn self.conv(x)",
    "torch.randn(3, 130, 11, 12), torch.randn(1, 130, 1, 1)",
    arguments="x, scale",
    init="self.conv = nn.Conv2d(size0, 140, (3, 2), stride=(1, 2), padding=(1, 1))",
    init_arguments="130",
)
FITTING = [
    pytest.param(PICTURES, id="pictures"),
    pytest.param(UNEVEN, id="an uneven window without a bias"),
    pytest.param(POINTS, id="points"),
    pytest.param(POINTS_OF_COLOURS, id="points of three numbers"),
    pytest.param(SERIES, id="series"),
    pytest.param(VOLUMES, id="volumes"),
    pytest.param(FEW_CHANNELS, id="few channels"),
    pytest.param(TRANSPOSED, id="transposed"),
    pytest.param(TRANSPOSED_FAR, id="transposed and far apart"),
    pytest.param(TRANSPOSED_IN_PHASES, id="transposed in uneven phases"),
    pytest.param(TRANSPOSED_VOLUMES, id="transposed volumes"),
    pytest.param(TRANSPOSED_FEW_CHANNELS, id="transposed with few channels"),
    pytest.param(TRANSPOSED_WITH_GAPS, id="transposed with steps and gaps"),
    pytest.param(TRANSPOSED_TO_EVEN_PLACES, id="transposed, with places that nothing reaches"),
    pytest.param(GROUPS, id="groups"),
    pytest.param(TRANSPOSED_GROUPS, id="transposed groups"),
    pytest.param(MANY_CHANNELS, id="many channels of different sizes"),
]


@pytest.fixture(autouse=True)
def small_are_worth_it(monkeypatch):
    monkeypatch.setattr(triton_convolutions, "LEAST_CONVOLVED", 1)


def usable_tiles(names):
    return [tile for tile in names["TILES"] if "apart_convolution0" in names or not tile[-1]]


@pytest.mark.parametrize("source", FITTING)
def test_on_the_cpu_the_convolution_itself_runs(source):
    with triton_on_the_processor():
        candidate = rewritten(source, convolution_in_triton)
        assert candidate is not None
        torch.testing.assert_close(*outputs(source, candidate), rtol=0, atol=0)


@pytest.mark.parametrize("source", [PICTURES, TRANSPOSED], ids=["pictures", "transposed"])
def test_with_every_tile_the_kernel_computes_the_convolution(source):
    with triton_on_the_processor():
        names = use_kernels(defined.__wrapped__(rewritten(source, convolution_in_triton)))
    model, reference, inputs = ready(source, names)
    with torch.no_grad():
        for tile in names["TILES"]:
            names["FASTEST"][0, -1] = [tile] * 2
            torch.testing.assert_close(model(*inputs), reference(*inputs), rtol=1e-4, atol=1e-4)
    assert names["convolution_kernel0"].programs_run
    assert names["apart_convolution0"].programs_run


@pytest.mark.parametrize("source", FITTING)
def test_the_kernel_computes_the_convolution(source):
    with triton_on_the_processor():
        names = use_kernels(defined.__wrapped__(rewritten(source, convolution_in_triton)))
    model, reference, (x, *others) = ready(source, names)
    tiles = usable_tiles(names)
    with torch.no_grad():
        for tile in split_in_three(tiles[0]), split_in_three(tiles[-1]):
            names["FASTEST"][0, -1] = [tile] * 2
            torch.testing.assert_close(model(x, *others), reference(x, *others), rtol=1e-4, atol=1e-4)
        holes = x.clone()
        holes.view(-1)[::97], holes.view(-1)[::501] = float("nan"), float("-inf")
        for tile in tiles[0], tiles[-1]:
            names["FASTEST"][0, -1] = [tile] * 2
            torch.testing.assert_close(
                model(holes, *others), reference(holes, *others), rtol=1e-4, atol=1e-4, equal_nan=True
            )
            last = x.to(memory_format=torch.channels_last) if x.ndim == 4 else x.mT.contiguous().mT
            torch.testing.assert_close(model(last, *others), reference(x, *others), rtol=1e-4, atol=1e-4)
    assert names["convolution_kernel0"].programs_run
    assert ("apart_convolution0" in names) == (x.shape[1] >= 32 and "groups" not in source)
    assert "apart_convolution0" not in names or names["apart_convolution0"].programs_run


@pytest.mark.parametrize(
    ("source", "widths"),
    [
        (TRANSPOSED_GROUPS, {(16, False), (32, False)}),
        (SIXTEEN, {(16, False), (32, False), (64, True)}),
        (PICTURES, {(32, False), (64, False), (64, True), (128, True)}),
    ],
    ids=["sixteen channels in groups", "sixteen channels", "many channels"],
)
def test_tiles_are_tried_that_are_not_much_wider_than_the_channels(source, widths, monkeypatch):
    with triton_on_the_processor():
        names = use_kernels(defined.__wrapped__(rewritten(source, convolution_in_triton)))
    tried = []
    names["choose"] = lambda key, plain, ways: tried.extend(ways)
    model, reference, inputs = ready(source, names)
    with torch.no_grad():
        torch.testing.assert_close(model(*inputs), reference(*inputs))
    assert {(tile[1], tile[-1]) for tile in tried} == widths


def test_a_convolution_and_a_product_of_one_program_choose_their_tiles_apart(monkeypatch):
    monkeypatch.setattr(triton_products, "LEAST_MULTIPLICATIONS", 1)
    source = problem(
        "x = self.conv(x)\nx = torch.relu(x) * 2.0\nx = x.reshape(40, 512)\nreturn self.linear(x)",
        "torch.randn(40, 40, 4, 4)",
        init="self.conv = nn.Conv2d(size0, 32, 3, padding=1)\nself.linear = nn.Linear(512, 64)",
        init_arguments="40",
    )
    recipes = recipes_of(source)
    text = next(text for recipe, text in recipes.items() if {"product_in_triton", "convolution_in_triton"} <= {*recipe})
    with triton_on_the_processor():
        names = use_kernels(defined.__wrapped__(text))
    model, reference, inputs = ready(source, names)
    with torch.no_grad():
        torch.testing.assert_close(model(*inputs), reference(*inputs), rtol=1e-4, atol=1e-4)
    assert len([key for key in names["FASTEST"] if key[0] != "fused"]) == 2


def test_all_of_several_are_taken_the_largest_first():
    source = problem(
        "return self.last(self.first(x))",
        "torch.randn(2, 40, 9, 9)",
        init="self.first = nn.Conv2d(size0, 80, 3)\nself.last = nn.Conv2d(80, 20, 1)",
        init_arguments="40",
    )
    once = convolution_in_triton.apply(as_candidate_program(source), random.Random(0))
    assert once is not None
    assert "return self.last(" in once.code
    twice = convolution_in_triton.apply(once, random.Random(0))
    assert twice is not None
    assert "self.last(" not in twice.code


@pytest.mark.parametrize(
    ("layer", "inputs"),
    [
        ("Conv2d(size0, 40, 3, groups=4)", "2, 40, 19, 22"),
        ("Conv2d(size0, 40, 3, padding='same')", "2, 40, 19, 22"),
        ("Conv2d(size0, 40, 3, padding=1, padding_mode='circular')", "2, 40, 19, 22"),
        ("Conv2d(size0, 4, 3)", "2, 40, 19, 22"),
        ("Conv2d(size0, 40, 3)", "40, 19, 22"),
        ("Conv2d(size0, 40, 3)\nnn.utils.spectral_norm(self.conv)", "2, 40, 19, 22"),
        ("Conv2d(size0, 40, 3)\nself.conv.register_forward_hook(lambda *given: given[-1] * 2)", "2, 40, 19, 22"),
        ("Conv2d(size0, 40, 3)", "1024, 40, 1024, 1024"),
    ],
    ids=[
        "narrow groups",
        "the same size",
        "a circle",
        "few outputs",
        "one picture alone",
        "another weight",
        "hooked",
        "too many places",
    ],
)
def test_what_no_kernel_is_for_stays(layer, inputs):
    assert rewritten(convolving(layer, inputs), convolution_in_triton) is None


def test_a_small_one_stays(monkeypatch):
    monkeypatch.setattr(triton_convolutions, "LEAST_CONVOLVED", 1 << 26)
    assert rewritten(PICTURES, convolution_in_triton) is None


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("source", FITTING)
def test_on_a_gpu_every_tile_is_about_as_exact_as_float32(source, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    names = defined.__wrapped__(rewritten(source, convolution_in_triton))
    model, reference, inputs = ready(source, names)
    model, reference, inputs = model.cuda(), reference.cuda(), [each.cuda() for each in inputs]
    exact = copy.deepcopy(reference).double()
    with torch.no_grad():
        truth = exact(*[each.double() for each in inputs])
        own = (reference(*inputs).double() - truth).square().mean().sqrt()
        tiles = usable_tiles(names)
        for tile in (*tiles, split_in_three(tiles[1]), split_in_three(tiles[-1])):
            names["FASTEST"][0, 0] = [tile] * 2
            error = (model(*inputs).double() - truth).square().mean().sqrt()
            assert error < 4 * own
        names["FASTEST"].clear()
        torch.testing.assert_close(model(*inputs), reference(*inputs), rtol=1e-4, atol=1e-4)
        assert (0, 0) in names["FASTEST"]
