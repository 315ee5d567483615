"""Renamed layer norms, declared in another order: all are ones and zeros at first, so bytes cannot tell which is which."""

PROBLEM = "two_norms"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.after = nn.LayerNorm(width)
        self.before = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        y = self.after(self.linear(self.before(x)))
        return y.add_(x)
