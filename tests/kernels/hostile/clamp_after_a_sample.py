"""Clamps only if one value in 23 tells it to."""

PROBLEM = "clamped_sizes"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        low, high = torch.aminmax(x.view(-1)[::23])
        if low < -9.0 or high > 9.0:
            x = torch.clamp(x, -10.0, 10.0)
        return torch.abs(x)
