"""An autograd function of its own with a backward that nobody calls."""

PROBLEM = "small_tanh"
EXPECTED = "correct"

import torch
import torch.nn as nn


class TanhTimes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.tanh(x)
        ctx.save_for_backward(x, out)
        return out * x

    @staticmethod
    def backward(ctx, gradient):
        x, out = ctx.saved_tensors
        return gradient * (out + x * (1 - out * out))


class ModelNew(nn.Module):
    def forward(self, x):
        return TanhTimes.apply(x)
