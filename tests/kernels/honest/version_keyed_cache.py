"""Keeps transposed weights until they change."""

PROBLEM = "linear_relu"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.version, self.weight_t = None, None

    def forward(self, x):
        weight = self.linear.weight
        if self.version != weight._version:
            self.version, self.weight_t = weight._version, weight.detach().t().contiguous()
        return torch.relu(x @ self.weight_t + self.linear.bias)
