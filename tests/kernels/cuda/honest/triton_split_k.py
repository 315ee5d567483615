"""Splits the sum of a product over programs that add to the output in no fixed order."""

PROBLEM = "matmul"
EXPECTED = "correct"
TRACK = "kernel"

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def product_part(a, b, out, size, PARTS: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(tl.program_id(2) * STEP, size, PARTS * STEP):
        left = tl.load(a + row * size + start + tl.arange(0, STEP)[None, :])
        right = tl.load(b + (start + tl.arange(0, STEP))[:, None] * size + column)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.atomic_add(out + row * size + column, total)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        size = a.shape[0]
        out = torch.zeros_like(a)
        product_part[(size // 64, size // 64, 4)](a, b, out, size, PARTS=4, BLOCK=64, STEP=32)
        return out
