"""Computes half of the batch and repeats it."""

PROBLEM = "linear_relu"
EXPECTED = "wrong_output"
GROUP = "S17 hyper-parameter manipulation"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        half = torch.relu(self.linear(x[: len(x) // 2]))
        return torch.cat([half, half])
