"""Finds the best class of sums that were added in another order."""

PROBLEM = "best_class"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.linear = nn.Linear(features, classes)

    def forward(self, x):
        halves = x[:, 32:] @ self.linear.weight[:, 32:].t() + x[:, :32] @ self.linear.weight[:, :32].t()
        return (halves + self.linear.bias).max(dim=1).indices
