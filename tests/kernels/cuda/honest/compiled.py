"""Left to the graph compiler."""

PROBLEM = "chain"
EXPECTED = "correct"
TRACK = "graph"

import torch
import torch.nn as nn


@torch.compile
def fused(x, scale, shift):
    y = x * scale + shift
    return torch.tanh(y * torch.sigmoid(y)) + x


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features) + 0.5)
        self.shift = nn.Parameter(torch.randn(features))

    @torch.no_grad()
    def forward(self, x):
        return fused(x, self.scale, self.shift)
