"""A Triton program with a name that does not exist."""

PROBLEM = "row_softmax"
EXPECTED = "compile_error"

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) * undeclared)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        copy[(x.numel() // 1024,)](x, out, BLOCK=1024)
        return out
