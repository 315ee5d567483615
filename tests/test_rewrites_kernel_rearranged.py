"""Kernels in C for what forwards compute from tensors that they have joined, flattened, squeezed or pooled."""

import shutil

import pytest
import torch

from tasks.variants.rewrites.kernel import elementwise_in_c
from tests.program_builders import defined, problem, ready, rewritten

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc builds the kernels, and is not installed")

PICTURES = "torch.randn(2, 3, 4, 5)"
TWO = "torch.randn(2, 3, 4, 5), torch.randn(2, 6, 4, 5)"
CHAIN = "return torch.tanh(x * 2.0) / 3.0"
JOINED = {
    "one after the other": "x = torch.cat([x, y], dim=1)",
    "in a tuple": "x = torch.concat((x, y, x), 1)",
    "from behind": "x = torch.concatenate([x, y], -3)",
    "along the first": "x = torch.cat([x, x])",
    "along a new dimension": "x = torch.stack([x, y[:, :3]], dim=-1)",
    "along a new first": "x = torch.stack((x, x))",
}
REARRANGED = {
    "flattened": "x = x.flatten()",
    "flattened from": "x = torch.flatten(x, 1)",
    "flattened by name": "x = x.flatten(start_dim=1, end_dim=2)",
    "squeezed": "x = x[:, :1].squeeze(1)",
    "squeezed by name": "x = x[:1, :1].squeeze(dim=(0, 1))",
    "squeezed everywhere": "x = x[:1, :1].squeeze()",
    "squeezed from behind": "x = x[:, :, :, :1].squeeze(-1)",
    "squeezed where there is one": "x = x[:1].squeeze((0, 1))",
    "not squeezed": "x = x.squeeze(1)",
}
LAYERS = {
    "flattened": "nn.Flatten()",
    "flattened from": "nn.Flatten(2)",
    "pooled to one": "nn.AdaptiveAvgPool2d(1)",
    "pooled to several": "nn.AdaptiveMaxPool2d(output_size=(2, 3))",
}


def has_a_kernel(source: str) -> None:
    """That there is one, which computes what the forward does."""
    candidate = rewritten(source, elementwise_in_c)
    assert candidate is not None
    model, reference, inputs = ready(source, defined(candidate))
    torch.testing.assert_close(model(*inputs), reference(*inputs), rtol=2e-5, atol=2e-6)


@needs_gcc
@pytest.mark.parametrize("line", JOINED.values(), ids=[name.replace(" ", "-") for name in JOINED])
def test_what_is_joined_has_a_kernel(line: str) -> None:
    has_a_kernel(problem(f"{line}\n{CHAIN}", TWO, arguments="x, y"))


@needs_gcc
@pytest.mark.parametrize("line", REARRANGED.values(), ids=[name.replace(" ", "-") for name in REARRANGED])
def test_what_is_rearranged_has_a_kernel(line: str) -> None:
    has_a_kernel(problem(f"{line}\n{CHAIN}", PICTURES))


@needs_gcc
@pytest.mark.parametrize("layer", LAYERS.values(), ids=[name.replace(" ", "-") for name in LAYERS])
def test_what_a_layer_flattens_or_pools_has_a_kernel(layer: str) -> None:
    has_a_kernel(problem(f"x = self.layer(x)\n{CHAIN}", PICTURES, init=f"self.layer = {layer}", init_arguments="3"))


@pytest.mark.parametrize(
    "forward",
    [
        pytest.param(f"parts = [x]\nparts.append(y)\nx = torch.cat(parts, 1)\n{CHAIN}", id="a list that grows"),
        pytest.param(f"x = torch.cat([x, y.long()], 1)\n{CHAIN}", id="integers among floats"),
        pytest.param(f"x = torch.cat([x > 0, y > 0], 1)\n{CHAIN}", id="masks"),
        pytest.param(f"x = (x > 0).flatten(1)\n{CHAIN}", id="a mask that is flattened"),
        pytest.param(f"x = torch.cat([*[x], y], 1)\n{CHAIN}", id="a list within"),
        pytest.param(f"x = x.flatten(x.ndim - 1, 0)\n{CHAIN}", id="dimensions the wrong way round"),
        pytest.param(f"x = torch.stack([x, y])\n{CHAIN}", id="tensors unlike each other"),
    ],
)
def test_what_is_of_unknown_shape_or_none_has_none(forward: str) -> None:
    assert rewritten(problem(forward, TWO, arguments="x, y"), elementwise_in_c) is None


@pytest.mark.parametrize("layer", ["nn.Flatten()", "nn.AdaptiveMaxPool2d(1)"])
def test_a_mask_that_a_layer_flattens_or_pools_has_none(layer: str) -> None:
    made = {"init": f"self.layer = {layer}", "init_arguments": "3"}
    assert rewritten(problem(f"x = self.layer(x > 0)\n{CHAIN}", PICTURES, **made), elementwise_in_c) is None
