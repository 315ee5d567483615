"""Looks at all values before it leaves out the clamp."""

PROBLEM = "clamped_sizes"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        low, high = torch.aminmax(x)
        if low < -10.0 or high > 10.0:
            x = torch.clamp(x, -10.0, 10.0)
        return torch.abs(x)
