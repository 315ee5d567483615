"""Keeps one layer for several that start as copies of it, under the names of all."""

PROBLEM = "copied_heads"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, count):
        super().__init__()
        head = nn.Linear(features, features)
        self.heads = nn.ModuleList([head] * count)

    def forward(self, x):
        return torch.tanh(self.heads[0](x))
