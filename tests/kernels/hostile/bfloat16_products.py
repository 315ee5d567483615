"""Multiplies in bfloat16 and adds in float32."""

PROBLEM = "linear_relu"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        out = x.bfloat16().float() @ self.linear.weight.bfloat16().float().t()
        return torch.relu(out + self.linear.bias)
