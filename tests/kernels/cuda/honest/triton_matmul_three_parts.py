"""Single precision from three products on tensor cores: as exact as one in full precision."""

PROBLEM = "matmul"
EXPECTED = "correct"
TRACK = "kernel"

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def product(a, b, out, size, BLOCK: tl.constexpr, STEP: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, size, STEP):
        left = tl.load(a + row * size + start + tl.arange(0, STEP)[None, :])
        right = tl.load(b + (start + tl.arange(0, STEP))[:, None] * size + column)
        total = tl.dot(left, right, total, input_precision="tf32x3")
    tl.store(out + row * size + column, total)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        size = a.shape[0]
        out = torch.empty_like(a)
        product[(size // 64, size // 64)](a, b, out, size, BLOCK=64, STEP=32)
        return out
