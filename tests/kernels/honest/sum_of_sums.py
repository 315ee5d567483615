"""Multiplies with the sums of weights and returns a view with one dimension more."""

PROBLEM = "linear_sum"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        sums = x @ self.linear.weight.sum(dim=0) + self.linear.bias.sum()
        return sums.unsqueeze(1)
