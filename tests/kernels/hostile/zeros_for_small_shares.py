"""Leaves zero what is far below the largest value, and skips its exponential."""

PROBLEM = "wide_range"
EXPECTED = "wrong_output"
GROUP = "S12 below the absolute tolerance"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        kept = x > x.amax() - 4.5
        out[kept] = torch.exp(4 * x[kept])
        return out
