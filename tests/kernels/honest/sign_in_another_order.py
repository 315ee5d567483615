"""Booleans of sums that were added in another order."""

PROBLEM = "linear_sign"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, 192)

    def forward(self, x):
        halves = x[:, 48:] @ self.linear.weight[:, 48:].t() + x[:, :48] @ self.linear.weight[:, :48].t()
        return halves > -self.linear.bias
