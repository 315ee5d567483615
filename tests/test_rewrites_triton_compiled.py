"""What the rewrites write is Triton: every kernel compiles for a GPU, which takes Triton itself but no GPU."""

import re
from typing import Any

import pytest

from tests.program_builders import defined, rewritten_once
from tests.test_rewrites_triton import FITTING
from tests.test_rewrites_triton_depthwise_layers import NETWORK, layers_in_triton

triton = pytest.importorskip("triton", reason="needs Triton, as in `pip install triton`")
AMPERE, HOPPER = 80, 90


def names_in(text: str) -> dict[str, Any]:
    """Not kept: other tests have the same programs with a stand-in."""
    return defined.__wrapped__(text)


def compiled(kernel: Any, types: dict[str, str], constants: dict[str, Any], *, capability: int, warps: int) -> str:
    """PTX of a kernel for arguments of these types."""
    source = triton.compiler.ASTSource(
        fn=kernel, signature=types | dict.fromkeys(constants, "constexpr"), constexprs=constants
    )
    target = triton.backends.compiler.GPUTarget("cuda", capability, 32)
    return str(triton.compile(source, target=target, options={"num_warps": warps}).asm["ptx"])


@pytest.mark.parametrize("capability", [AMPERE, HOPPER])
@pytest.mark.parametrize(("rewrite", "source"), FITTING)
def test_a_kernel_for_one_set_of_shapes_compiles(rewrite: Any, source: str, capability: int) -> None:
    text = rewritten_once(source, rewrite)
    assert text is not None
    kernel, launch = names_in(text)["kernel0"], re.search(r"launch\(kernel0, .*num_warps=(\d+)\)", text)
    assert launch is not None
    types = dict.fromkeys(kernel.arg_names, "*fp32")
    if "dtype=torch.int64" in text:
        types["out"] = "*i64"
    ptx = compiled(kernel, types, {}, capability=capability, warps=int(launch[1]))
    assert f".target sm_{capability}" in ptx
    assert "st.global" in ptx


@pytest.mark.parametrize("taps", [(3, 3), (7, 7)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_the_kernel_of_depthwise_layers_compiles(has_bias: bool, taps: tuple[int, int]) -> None:
    kernel = names_in(rewritten_once(NETWORK, layers_in_triton) or "")["depthwise_kernel"]
    tensors, sizes, settings = kernel.arg_names[:4], kernel.arg_names[4:-3], kernel.arg_names[-3:]
    types = dict.fromkeys(tensors, "*fp32") | dict.fromkeys(sizes, "i32")
    constants = dict(zip(settings, (has_bias, *taps), strict=True))
    ptx = compiled(kernel, types, constants, capability=HOPPER, warps=4)
    assert len(re.findall(r"ld\.global", ptx)) > 2 * taps[0] * taps[1]
