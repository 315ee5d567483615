"""Scales its weights in place at every call and divides by what it scaled."""

PROBLEM = "linear_relu"
EXPECTED = "wrong_output"
GROUP = "S9 input mutation"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    @torch.no_grad()
    def forward(self, x):
        self.linear.weight.mul_(0.5)
        return torch.relu(2 * (x @ self.linear.weight.t()) + self.linear.bias)
