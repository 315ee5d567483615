"""Rounds its weights, not its inputs, to half precision."""

PROBLEM = "linear_relu"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return torch.relu(F.linear(x, self.linear.weight.half().float(), self.linear.bias))
