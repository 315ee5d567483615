"""Looks the 256 possible pixel values up in a table, from the constructor's gamma."""

PROBLEM = "pixel_gamma"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, gamma):
        super().__init__()
        table = (torch.arange(256, dtype=torch.float64) / 255) ** gamma
        self.register_buffer("table", table.float(), persistent=False)
        self.gains = nn.Parameter(torch.rand(3) + 0.5)

    def forward(self, pixels):
        return self.table[pixels.long()].mul_(self.gains[:, None, None])
