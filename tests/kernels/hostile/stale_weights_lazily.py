"""Copies the weights at the first call and never looks again."""

PROBLEM = "linear_relu"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.weight_t = None

    def forward(self, x):
        if self.weight_t is None:
            self.weight_t = self.linear.weight.detach().t().contiguous()
        return torch.relu(x @ self.weight_t + self.linear.bias)
