"""Forks and waits inside of torch's own interpreter."""

PROBLEM = "mixed_tanh"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, features)
        self.second = nn.Linear(features, features)

    def forward(self, x):
        first = torch.jit.fork(lambda: torch.tanh(self.first(x)))
        second = torch.sigmoid(self.second(x))
        return torch.jit.wait(first) + second
