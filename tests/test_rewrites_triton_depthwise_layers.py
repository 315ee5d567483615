"""Convolutions of each channel by itself, which a model builds in loops: right in their kernel, and when they stay."""

import functools

import pytest
import torch

from tasks.variants.rewrites.triton_layers import layers_in_triton
from tests.program_builders import defined, outputs, problem, ready, rewritten_once
from tests.triton_stand_in import triton_on_the_processor, use_kernels

pytestmark = pytest.mark.usefixtures("is_capturing")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
NETWORK = problem(
    "return self.pictures(x)",
    "torch.randn(2, 6, 19, 23)",
    init="""
self.pictures = nn.Sequential(
    nn.Conv2d(size0, size0, (3, 5), stride=(2, 1), padding=(1, 0), groups=size0, bias=False),
    nn.ReLU(),
    nn.Conv2d(size0, size0, 3, dilation=(1, 2), padding=(0, 3), groups=size0),
    nn.Conv2d(size0, size0, 2, groups=2),
    nn.Conv2d(size0, 2 * size0, 2, groups=size0),
)
""",
    init_arguments="6",
)
NUM_DEPTHWISE = 2


def program():
    with triton_on_the_processor():
        names = use_kernels(defined.__wrapped__(rewritten_once(NETWORK, layers_in_triton)))
    names["LEAST_DEPTHWISE"] = 0
    return names


def test_on_the_cpu_they_are_what_they_were():
    with triton_on_the_processor():
        torch.testing.assert_close(*outputs(NETWORK, rewritten_once(NETWORK, layers_in_triton)))


def test_program_by_program_they_are_right_whatever_comes():
    names = program()
    model, reference, (x,) = ready(NETWORK, names)
    holes = x.clone()
    holes[0, :, ::7], holes[1, :, :, ::5] = float("nan"), float("inf")
    with torch.no_grad():
        for given in x, x[:, :, :-4, 2:].contiguous(), x[:1], holes:
            torch.testing.assert_close(model(given), reference(given), equal_nan=True)
    assert names["depthwise_kernel"].programs_run
    assert not names["layer_kernel"].programs_run
    shapes = 3  # of pictures, whatever is in them
    assert [key[0] for key in names["FASTEST"]] == ["depthwise"] * NUM_DEPTHWISE * shapes
    assert all(found == ["kernel"] * 2 for found in names["FASTEST"].values())


def test_the_library_computes_where_it_is_faster():
    names = program()
    names["triton_best_ms"] = lambda calls: ([0.0, 1.0], [0.0, 1.0])
    model, reference, (x,) = ready(NETWORK, names)
    with torch.no_grad():
        model(x)
        before = names["depthwise_kernel"].programs_run
        torch.testing.assert_close(model(x), reference(x))
    assert names["depthwise_kernel"].programs_run == before > 0


def test_few_places_and_pictures_with_their_channels_last_stay_with_the_library():
    names = program()
    model, reference, (x,) = ready(NETWORK, names)
    with torch.no_grad():
        last = x.to(memory_format=torch.channels_last)
        assert model(last).is_contiguous(memory_format=torch.channels_last)
        names["LEAST_DEPTHWISE"] = 1 << 18
        torch.testing.assert_close(model(x), reference(x))
    assert not names["FASTEST"]


def test_a_layer_of_very_many_taps_stays_with_the_library():
    names = program()
    names["depthwise_kernel"].function = None  # or it would be run
    layer = torch.nn.Conv2d(2, 2, (13, 5), groups=2)
    layer.forward = functools.partial(names["LAYER_FORWARDS"][torch.nn.Conv2d], layer)
    with torch.no_grad():
        assert layer(torch.randn(1, 2, 20, 20)).shape == (1, 2, 8, 16)
    assert not names["FASTEST"]


def test_what_does_not_fit_a_layer_is_the_layers_own_error():
    names = program()
    model, _, (x,) = ready(NETWORK, names)
    with torch.no_grad(), pytest.raises(RuntimeError, match="channels"):
        model(x[:, 1:].contiguous())


@pytest.mark.gpu
@needs_gpu
def test_on_a_gpu_they_are_right_and_gradients_take_the_library():
    names = defined.__wrapped__(rewritten_once(NETWORK, layers_in_triton))
    names["LEAST_DEPTHWISE"] = 0
    model, reference, (x,) = ready(NETWORK, names)
    model, reference, x = model.cuda(), reference.cuda(), x.cuda()
    with torch.no_grad():
        model(x)
        assert len(names["FASTEST"]) == NUM_DEPTHWISE
        for key in names["FASTEST"]:
            names["FASTEST"][key] = ["kernel"] * 2
        for given in x, x + 1e3:
            torch.testing.assert_close(model(given), reference(given), rtol=1e-4, atol=1e-4)
    model(x).sum().backward()
    assert model.pictures[0].weight.grad is not None
