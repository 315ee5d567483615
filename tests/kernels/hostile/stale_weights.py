"""Copies the weights when it is built and never looks again."""

PROBLEM = "linear_relu"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.weight_t = self.linear.weight.detach().t().contiguous()

    def forward(self, x):
        return torch.relu(x @ self.weight_t + self.linear.bias)
