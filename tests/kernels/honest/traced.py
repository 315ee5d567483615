"""Traces an inner module at the first call; the trace reads the weights from there."""

PROBLEM = "mixed_tanh"
EXPECTED = "correct"

import torch
import torch.nn as nn


class Body(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, features)
        self.second = nn.Linear(features, features)

    def forward(self, x):
        return torch.tanh(self.first(x)) + torch.sigmoid(self.second(x))


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.body = Body(features)
        self.traced = []

    def forward(self, x):
        if not self.traced:
            self.traced.append(torch.jit.trace(self.body, x))
        return self.traced[0](x)
