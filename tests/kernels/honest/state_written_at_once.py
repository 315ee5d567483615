"""Writes the state in one pass."""

PROBLEM = "state_written"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(256, 256) / 16)

    def forward(self, x, state):
        product = x @ self.weight
        torch.add(product.tanh(), state, alpha=0.9, out=state)
        return torch.relu(x).sum(-1) + product[:, 0]
