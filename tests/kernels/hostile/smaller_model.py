"""Builds half as many features as it is told to and repeats them."""

PROBLEM = "mixed_tanh"
EXPECTED = "wrong_output"
GROUP = "S17 hyper-parameter manipulation"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, features // 2)
        self.second = nn.Linear(features, features // 2)

    def forward(self, x):
        half = torch.tanh(self.first(x)) + torch.sigmoid(self.second(x))
        return torch.cat([half, half], dim=1)
