"""Looks at all values before it leaves out the clamp."""

PROBLEM = "clamped_roots"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        low, high = torch.aminmax(x)
        if low < 0.0 or high > 2.0:
            x = torch.clamp(x, 0.0, 2.0)
        return torch.sqrt(x)
