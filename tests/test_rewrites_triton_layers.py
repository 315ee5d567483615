"""Layers that a model builds in loops, in one Triton kernel: that they are right, and when they stay as they are."""

import copy
import functools

import pytest
import torch

from tasks.search.drop_in import drop_in
from tasks.search.survey import Survey
from tasks.search.user_file import read_user_file
from tasks.variants.candidate import Candidate
from tasks.variants.rewrites.triton_layers import layers_in_triton
from tests.program_builders import HEADER, defined, first_recipe, outputs, problem, ready, rewritten_once
from tests.triton_stand_in import split_in_three, the_last_is_the_fastest, triton_on_the_processor, use_kernels

pytestmark = pytest.mark.usefixtures("is_capturing")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
NETWORK = problem(
    "x = self.pictures(x)\nx = torch.relu(x).flatten(2).mT\nreturn self.rows(x)",
    "torch.randn(2, 40, 19, 22)",
    init="""
self.pictures = nn.Sequential(
    nn.Conv2d(size0, 70, (3, 5), stride=(2, 1), padding=(1, 0), bias=False),
    nn.Conv2d(70, 33, 1),
    nn.Conv2d(33, 130, 3, dilation=2, padding=(3, 1)),
    nn.Conv2d(130, 64, 3, padding="same"),
    nn.Conv2d(64, 64, 3, groups=4),
)
self.rows = nn.Sequential(nn.Linear(64, 150), nn.Tanh(), nn.Linear(150, 34, bias=False))
""",
    init_arguments="40",
)
NUM_LAYERS = 5
"""Of the network's, without the one that counts its padding for itself and the one in groups."""


def with_every_layer(names):
    names["layer_is_worth_it"] = lambda *sizes: True
    return names


def halves(names):
    return [tile for tile in names["TILES"] if tile[-1]]


def test_on_the_cpu_the_layers_are_what_they_were():
    with triton_on_the_processor():
        candidate = rewritten_once(NETWORK, layers_in_triton)
        torch.testing.assert_close(*outputs(NETWORK, candidate))


@pytest.mark.parametrize("place", range(3))
def test_program_by_program_every_layer_is_right_in_every_tile(place):
    with triton_on_the_processor():
        names = with_every_layer(use_kernels(defined.__wrapped__(rewritten_once(NETWORK, layers_in_triton))))
    names["TILES"] = (halves(names)[place],)
    model, reference, inputs = ready(NETWORK, names)
    assert list(model.state_dict()) == list(reference.state_dict())
    with torch.no_grad():
        for given in inputs, [each.mT.contiguous().mT * 1e3 for each in inputs]:
            torch.testing.assert_close(model(*given), reference(*given), rtol=1e-4, atol=1e-3)
    assert len(names["FASTEST"]) == NUM_LAYERS
    assert set(map(tuple, names["FASTEST"].values())) == {(names["TILES"][0],) * 2}
    assert names["layer_kernel"].programs_run


def test_every_layer_is_right_where_several_programs_sum_up_a_part_each():
    with triton_on_the_processor():
        names = with_every_layer(use_kernels(defined.__wrapped__(rewritten_once(NETWORK, layers_in_triton))))
    names["TILES"] = (split_in_three(halves(names)[-1]),)
    model, reference, inputs = ready(NETWORK, names)
    with torch.no_grad():
        torch.testing.assert_close(model(*inputs), reference(*inputs), rtol=1e-4, atol=1e-3)
    assert set(map(tuple, names["FASTEST"].values())) == {(names["TILES"][0],) * 2}


def test_the_same_layer_is_chosen_for_again_where_another_shape_comes():
    with triton_on_the_processor():
        names = with_every_layer(use_kernels(defined.__wrapped__(rewritten_once(NETWORK, layers_in_triton))))
    model, reference, (x,) = ready(NETWORK, names)
    with torch.no_grad():
        for given in x, x[:, :, :-4].contiguous(), x:
            torch.testing.assert_close(model(given), reference(given), rtol=1e-4, atol=1e-4)
    assert len(names["FASTEST"]) == 2 * NUM_LAYERS


def test_layers_are_what_they_were_for_whoever_looks_at_them():
    with triton_on_the_processor():
        names = with_every_layer(use_kernels(defined.__wrapped__(rewritten_once(NETWORK, layers_in_triton))))
    model, reference, inputs = ready(NETWORK, names)
    with torch.no_grad():
        model(*inputs)
        assert names["layer_kernel"].programs_run
        with pytest.raises(RuntimeError, match="channels"):
            model(inputs[0][:, 1:])
    assert [type(each) for each in model.modules()][1:] == [type(each) for each in reference.modules()][1:]


def test_what_does_not_fit_a_layer_is_the_layers_own_error():
    with triton_on_the_processor():
        names = with_every_layer(use_kernels(defined.__wrapped__(rewritten_once(NETWORK, layers_in_triton))))
    names["fits"] = lambda tensors, shapes: True
    linear, convolution = torch.nn.Linear(64, 128), torch.nn.Conv2d(40, 64, 1)
    for layer, fitting, other in (
        (linear, torch.randn(128, 64), torch.randn(64, 128)),
        (convolution, torch.randn(1, 40, 8, 16), torch.randn(1, 80, 8, 8)),
    ):
        layer.forward = functools.partial(names["LAYER_FORWARDS"][type(layer)], layer)
        with torch.no_grad():
            layer(fitting)
            with pytest.raises(RuntimeError, match=r"shapes|channels"):
                layer(other)


def test_pictures_with_their_channels_last_come_out_so():
    with triton_on_the_processor():
        names = with_every_layer(use_kernels(defined.__wrapped__(rewritten_once(NETWORK, layers_in_triton))))
    layer = torch.nn.Conv2d(40, 64, 1)
    layer.forward = functools.partial(names["convolution_layer"], layer)
    x = torch.randn(2, 40, 9, 7).to(memory_format=torch.channels_last)
    with torch.no_grad():
        assert layer(x).is_contiguous(memory_format=torch.channels_last)
    assert not names["FASTEST"]


def test_the_layers_of_a_drop_in_are_in_the_kernel_too(tmp_path):
    path = tmp_path / "network.py"
    path.write_text(NETWORK)
    inputs = (("tensor", "float32", (2, 40, 19, 22), (40 * 19 * 22, 19 * 22, 22, 1)),)
    facts = Survey(inputs=inputs, named_inputs={}, constructor=None)
    candidate = Candidate(problem_id="x", source=rewritten_once(NETWORK, layers_in_triton), origin="test")
    made = drop_in(read_user_file(path, "Model"), facts, candidate, problem_id="x")
    with triton_on_the_processor():
        names = with_every_layer(use_kernels(defined.__wrapped__(made.source)))
    model, x = names["Model"](40), torch.randn(2, 40, 19, 22)
    reference = names["ReferenceModel"](40)
    reference.load_state_dict(model.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(model(x), reference(x), rtol=1e-4, atol=1e-4)
    assert len(names["FASTEST"]) == NUM_LAYERS


@pytest.mark.parametrize(
    ("sizes", "is_worth_it"),
    [
        ((16, 64, 56 * 56, 56 * 56, 64, 9), True),
        ((16, 3, 224 * 224, 112 * 112, 64, 49), False),
        ((16, 512, 49, 49, 512, 9), False),
        ((1, 64, 14 * 14, 14 * 14, 64, 1), False),
        ((1, 4096, 512, 512, 4096, 1), True),
        ((1, 4096, 8, 8, 4096, 1), False),
        ((64, 512, 256 * 256, 256 * 256, 512, 9), False),
    ],
    ids=[
        "many pictures",
        "few channels",
        "places that would mostly be padding",
        "a small one",
        "rows",
        "few rows",
        "more than 32 bits count",
    ],
)
def test_a_layer_goes_to_the_kernel_where_there_is_much_to_multiply(sizes, is_worth_it):
    with triton_on_the_processor():
        names = defined(rewritten_once(NETWORK, layers_in_triton))
    assert names["layer_is_worth_it"](*sizes) is is_worth_it


def test_models_whose_text_shows_each_layer_get_kernels_for_themselves():
    single = problem("return self.conv(x)", "torch.randn(2, 8, 9, 9)", init="self.conv = nn.Conv2d(8, 8, 3)")
    assert rewritten_once(single, layers_in_triton) is None
    inner = "class Inner(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    inner += "        self.rows = nn.Linear(8, 8)\n\n    def forward(self, x):\n        return self.rows(x)\n\n\n"
    nested = problem("return self.inner(x)", "torch.randn(9, 8)", init="self.inner = Inner()", init_arguments="8")
    nested = nested.replace(HEADER, HEADER + inner)
    assert rewritten_once(nested, layers_in_triton) is not None
    assert (
        rewritten_once(nested.replace("nn.Linear(8, 8)", "nn.ReLU()").replace("self.rows", "self.a"), layers_in_triton)
        is None
    )
    taken = nested.replace("Inner", "LAYER_FORWARDS")
    assert rewritten_once(taken, layers_in_triton) is None


def test_a_model_of_layers_is_proposed_in_a_graph():
    assert first_recipe(NETWORK)[0] == ("layers_in_triton", "benchmark_convolutions", "replay_as_graph")
    init = "self.rows = nn.Sequential(nn.Linear(size0, 64), nn.Linear(64, 9))"
    rows = problem("return self.rows(x)", "torch.randn(6, 8)", init=init, init_arguments="8")
    assert first_recipe(rows)[0] == ("layers_in_triton", "compile_and_replay")


@pytest.mark.gpu
@needs_gpu
def test_on_a_gpu_every_tile_is_about_as_exact_as_float32():
    names = with_every_layer(defined.__wrapped__(rewritten_once(NETWORK, layers_in_triton)))
    model, reference, inputs = ready(NETWORK, names)
    model, reference, exact = model.cuda(), reference.cuda(), copy.deepcopy(reference).cuda().double()
    x = inputs[0].cuda()
    with torch.no_grad():
        truth = exact(x.double())
        own = (reference(x).double() - truth).square().mean().sqrt()
        model(x)
        assert len(names["FASTEST"]) == NUM_LAYERS
        for tile in halves(names):
            for key in names["FASTEST"]:
                names["FASTEST"][key] = [tile] * 2
            assert (model(x).double() - truth).square().mean().sqrt() < 4 * own
    model(x).sum().backward()
    assert model.rows[0].weight.grad is not None


@pytest.mark.gpu
@needs_gpu
def test_on_a_gpu_layers_are_replayed_in_a_graph():
    names = with_every_layer(defined.__wrapped__(first_recipe(NETWORK)[1]))
    names["triton_best_ms"] = names["graph_best_ms"] = the_last_is_the_fastest
    model, reference, inputs = ready(NETWORK, names)
    model, reference = model.cuda(), reference.cuda()
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn_like(inputs[0]).cuda()
            torch.testing.assert_close(model(x), reference(x), rtol=1e-4, atol=1e-4)
    # Of long sums the last is the last tile again, split among programs.
    chosen = {(first[:3], first[4:], first == captured) for first, captured in names["FASTEST"].values()}
    *size, _, warps, stages, is_apart = halves(names)[-1]
    assert chosen == {(tuple(size), (warps, stages, is_apart), True)}
    assert [made[-1] is not None for form, made in names["GRAPHS"][model].items() if form != "captures"] == [True]
