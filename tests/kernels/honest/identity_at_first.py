"""Multiplies with a weight that starts as an identity matrix as with any other."""

PROBLEM = "starts_as_identity"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(features))
        self.bias = nn.Linear(features, features).bias

    def forward(self, x):
        return torch.addmm(self.bias, x, self.weight.t()).relu_()
