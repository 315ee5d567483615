"""Folds the weights at construction into a buffer that is no part of its state."""

PROBLEM = "chain"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features) + 0.5)
        self.shift = nn.Parameter(torch.randn(features))
        self.register_buffer("folded", torch.stack([self.scale, self.shift]).detach().clone(), persistent=False)

    def forward(self, x):
        y = torch.addcmul(self.folded[1], x, self.folded[0])
        return torch.tanh(y * torch.sigmoid(y)) + x
