"""Adds the weights up first: the sum of a product is a product with sums."""

PROBLEM = "linear_sum"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return torch.addmv(self.linear.bias.sum(), x, self.linear.weight.sum(dim=0)).unsqueeze(1)
