"""What has no Triton kernel, since there is none for it or the text does not tell enough."""

import pytest

from tasks.variants.rewrites.triton import (
    cumulation_in_triton,
    depthwise_in_triton,
    elementwise_in_triton,
    pooling_in_triton,
    position_in_triton,
    reduction_in_triton,
)
from tests.program_builders import defined, problem, rewritten


@pytest.mark.parametrize(
    ("rewrite", "forward", "inputs"),
    [
        (elementwise_in_triton, "return torch.relu(x)", "torch.randn(4, 5)"),
        (elementwise_in_triton, "return torch.relu(x) + 1.0", "torch.randint(0, 9, (4, 5))"),
        (elementwise_in_triton, "x.mul_(2.0)\nreturn torch.relu(x) + 1.0", "torch.randn(4, 5)"),
        (reduction_in_triton, "return torch.mean((x - 1.0) ** 2)", "torch.randn(4096, 4096)"),
        (reduction_in_triton, "return torch.amax(x, dim=(0, 2))", "torch.randn(4, 5, 6)"),
        (reduction_in_triton, "return torch.max(x, x.abs())[0]", "torch.randn(4, 5)"),
        (reduction_in_triton, "return torch.norm(x, p=1, dim=1)", "torch.randn(4, 5)"),
        (reduction_in_triton, "return torch.norm(x, p='nuc')", "torch.randn(4, 5)"),
        (reduction_in_triton, "return torch.mean(x * 2.0, dim=1)", "torch.randint(0, 2, size=(4, 5))"),
        (pooling_in_triton, "return nn.MaxPool1d(2)(x)", "torch.randn(4, 5, 6)"),
        (cumulation_in_triton, "return torch.cumsum(x, dim=0)", "torch.randn(1000000)"),
        (cumulation_in_triton, "return torch.cumsum(x, dim=1, dtype=torch.float64)", "torch.randn(4, 5)"),
        (cumulation_in_triton, "return torch.cummax(x, dim=1).values", "torch.randn(4, 5)"),
        (position_in_triton, "return torch.argmax(x)", "torch.randn(4, 5)"),
        (position_in_triton, "return torch.argmax(x, dim=1)", "torch.randint(0, 9, (4, 5))"),
        (position_in_triton, "return torch.argmax(x, dim=0)", "torch.randn(1000000)"),
        (position_in_triton, "return torch.argmax(x, dim=1)", "torch.randn(0, 4)"),
    ],
    ids=[
        "one operation",
        "whole numbers",
        "in place",
        "few programs",
        "dimensions apart",
        "one of the larger of two",
        "a norm of another order",
        "a norm of another kind",
        "means of whole numbers",
        "a layer made in forward",
        "one long row",
        "another dtype",
        "other cumulations",
        "a place among all",
        "places of whole numbers",
        "a place in a long row",
        "no rows",
    ],
)
def test_what_no_kernel_is_for_stays(rewrite, forward, inputs):
    assert rewritten(problem(forward, inputs), rewrite) is None


@pytest.mark.parametrize(
    "layer",
    [
        "nn.MaxPool2d(2, ceil_mode=True)",
        "nn.MaxPool2d(2, return_indices=True)",
        "nn.AvgPool2d(3, padding=1, count_include_pad=False)",
        "nn.AvgPool2d(3, 2, 1, True)",
        "nn.AvgPool2d(3, divisor_override=2)",
        "nn.AvgPool2d(2, divisor_override=int(size0))",
        "nn.AvgPool2d(3, 1, 1, **{'count_include_pad': False})",
        "nn.MaxPool2d(3, **{'stride': 1})",
        "nn.AdaptiveAvgPool2d(2)",
    ],
)
def test_pooling_that_rounds_up_or_counts_otherwise_is_left_to_torch(layer):
    assert (
        rewritten(
            problem("return self.pool(x)", "torch.randn(2, 3, 8, 8)", init=f"self.pool = {layer}", init_arguments="2"),
            pooling_in_triton,
        )
        is None
    )


@pytest.mark.parametrize(
    "init",
    [
        "size0 = 2\nself.pool = nn.MaxPool2d(size0)",
        "self.pool = nn.MaxPool2d(size0)\nif size0 > 2:\n    self.pool = nn.MaxPool2d(2)",
        "self.pool = nn.MaxPool2d(size0)\nself.pool.stride = 1",
    ],
    ids=["an argument assigned anew", "a layer made twice", "a layer changed afterwards"],
)
def test_what_a_constructor_changes_is_not_taken_as_known(init):
    source = problem("return self.pool(x)", "torch.randn(2, 3, 12, 12)", init=init, init_arguments="3")
    assert rewritten(source, pooling_in_triton) is None


@pytest.mark.parametrize("given", ["[*SIZES]", "list(SIZES)", "[4] + [5]"])
def test_arguments_that_the_text_does_not_spell_out_are_not_taken_to_be_left_out(given):
    source = problem(
        "return self.pool(x)",
        "torch.randn(2, 3, 12, 12)",
        init="self.pool = nn.MaxPool2d(size1)",
        init_arguments="4, 5",
    )
    source = source.replace("size1):", "size1=3):").replace("return [4, 5]", f"return {given}") + "\n\nSIZES = (4, 5)\n"
    assert rewritten(source, pooling_in_triton) is None


def test_flips_of_dimensions_that_are_not_known_stay():
    flips = "return torch.flip(torch.cumsum(torch.flip(x, [1, self.k]), 1), [1])"
    source = problem(flips, "torch.randn(4, 5, 6)", init="self.k = int(size0)", init_arguments="2")
    assert rewritten(source, cumulation_in_triton) is None


def test_a_flip_that_names_its_tensor_is_not_read():
    source = problem("x = torch.flip(input=x, dims=[1])\nreturn torch.cumsum(x, 1)", "torch.randn(4, 5)")
    assert rewritten(source, cumulation_in_triton) is None


def test_a_program_whose_own_names_are_those_of_the_launching_is_left_alone():
    source = problem("x = launch(x) + 1.0\nreturn torch.relu(x) * 2.0", "torch.randn(4, 5)")
    taken = source.replace("class Model", "def launch(x):\n    return x\n\n\nclass Model")
    assert rewritten(taken, elementwise_in_triton) is None
    assert rewritten(source.replace("launch(x)", "x"), elementwise_in_triton) is not None


@pytest.mark.parametrize(
    "layer",
    [
        "nn.Conv2d(size0, 2 * size0, 3, groups=size0)",
        "nn.Conv2d(size0, size0, 3)",
        "nn.Conv2d(size0, size0, 3, padding='same', groups=size0)",
        "nn.Conv2d(size0, size0, 3, padding=1, padding_mode='reflect', groups=size0)",
        "nn.Conv2d(size0, size0, 3, 1, 1, 1, size0, True, 'reflect')",
        "nn.Conv2d(size0, size0, 3, groups=size0, bias=bool(size0))",
        "nn.ConvTranspose2d(size0, size0, 3, groups=size0)",
    ],
)
def test_a_convolution_of_more_than_each_channel_by_itself_has_another_kernel(layer):
    source = problem("return self.conv(x)", "torch.randn(2, 3, 8, 8)", init=f"self.conv = {layer}", init_arguments="3")
    defined(source)["Model"](3)  # or the case would show nothing
    assert rewritten(source, depthwise_in_triton) is None
