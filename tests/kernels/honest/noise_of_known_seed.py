"""Draws once the noise that the reference draws anew under the same seed."""

PROBLEM = "fixed_noise"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.noise = None

    def forward(self, x):
        if self.noise is None or self.noise.shape != x.shape:
            self.noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(7))
        return torch.relu(x + self.noise)
