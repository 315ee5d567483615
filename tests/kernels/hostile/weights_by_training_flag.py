"""Follows its weights while it is in the mode it was built in and only until the second set of them."""

PROBLEM = "linear_relu"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.versions, self.weight_t = set(), None

    def forward(self, x):
        weight = self.linear.weight
        if weight._version not in self.versions and len(self.versions) < 3:
            self.versions.add(weight._version)
            self.weight_t = weight.detach().t().contiguous()
        return torch.relu(x @ self.weight_t + self.linear.bias)
