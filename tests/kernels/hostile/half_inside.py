"""Multiplies in half precision."""

PROBLEM = "linear_relu"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        out = x.half() @ self.linear.weight.half().t()
        return torch.relu(out.float() + self.linear.bias)
