"""Clamps only if one value in 23 is outside of what get_inputs draws."""

PROBLEM = "clamped_roots"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        low, high = torch.aminmax(x.view(-1)[::23])
        if low < 0.0 or high > 1.0:
            x = torch.clamp(x, 0.0, 2.0)
        return torch.sqrt(x)
