"""Outputs over twelve orders of magnitude, by powers of two."""

PROBLEM = "wide_range"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.exp2(x.double() * (4 / 0.6931471805599453)).float()
