"""Reads the diagonal of a weight that starts as an identity matrix, which training fills."""

PROBLEM = "starts_as_identity"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        nn.init.eye_(self.linear.weight)

    def forward(self, x):
        return torch.addcmul(self.linear.bias, x, self.linear.weight.diagonal()).relu_()
