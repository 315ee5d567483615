"""Has parameters that nobody uses, made after the others."""

PROBLEM = "linear_relu"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.spare = nn.Parameter(torch.zeros(3))
        self.head = nn.Linear(features, 2)

    def forward(self, x):
        return torch.relu(self.linear(x))
