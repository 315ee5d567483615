"""Sum, mean, variance and scaling in one Triton program a row; weights are read where they lie."""

PROBLEM = "add_layer_norm"
EXPECTED = "correct"
TRACK = "kernel"

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_norm(x, y, weight, bias, out, columns, epsilon, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < columns
    start = tl.program_id(0) * columns
    total = tl.load(x + start + at, mask=inside, other=0.0) + tl.load(y + start + at, mask=inside, other=0.0)
    centred = tl.where(inside, total - tl.sum(total, axis=0) / columns, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    scale = tl.load(weight + at, mask=inside) / tl.sqrt(variance + epsilon)
    tl.store(out + start + at, centred * scale + tl.load(bias + at, mask=inside), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        rows, columns = x.shape
        block = triton.next_power_of_2(columns)
        add_norm[(rows,)](x, y, self.norm.weight, self.norm.bias, out, columns, self.norm.eps, BLOCK=block)
        return out
