"""The product by the library; bias and GELU in one Triton kernel, in place on the product."""

PROBLEM = "linear_gelu"
EXPECTED = "correct"
TRACK = "kernel"

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bias_gelu(x, bias, columns, num_items, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < num_items
    value = tl.load(x + at, mask=inside) + tl.load(bias + at % columns, mask=inside)
    tl.store(x + at, 0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476)), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    @torch.no_grad()
    def forward(self, x):
        out = x @ self.linear.weight.t()
        grid = (triton.cdiv(out.numel(), 1024),)
        bias_gelu[grid](out, self.linear.bias, out.shape[1], out.numel(), BLOCK=1024)
        return out
