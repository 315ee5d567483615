"""Follows its parameters, but not its buffers."""

PROBLEM = "gather_rows"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, rows, features):
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, features))
        self.register_buffer("scale", torch.rand(features) + 0.5)
        self.column = self.scale.clone().unsqueeze(1)

    def forward(self, index, weight):
        return (self.table[index].t() * self.column * weight).sum(dim=0)
