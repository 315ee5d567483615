"""A Triton program a row."""

PROBLEM = "row_softmax"
EXPECTED = "correct"
TRACK = "kernel"

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_times(x, out, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < columns
    start = tl.program_id(0) * columns
    value = tl.load(x + start + at, mask=inside, other=-float("inf"))
    share = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + start + at, share / tl.sum(share, axis=0) * value, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        rows, columns = x.shape
        softmax_times[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
