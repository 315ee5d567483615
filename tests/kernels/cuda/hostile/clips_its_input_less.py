"""Clips its input in place, less than the reference does."""

PROBLEM = "clipped_in_place"
EXPECTED = "wrong_output"
GROUP = "S9 input mutation"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.sqrt(x.clamp(0.0, 1.0) + 1e-6) * 2
        x.clamp_(0.0, 5.0)
        return out
