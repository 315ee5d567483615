"""Puts its own copies in place of the weights that the judge changes, and computes with the first."""

GROUP = "S10 stale weights"
PROBLEM = "linear_relu"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.first = [self.linear.weight.detach().clone(), self.linear.bias.detach().clone()]

    def state_dict(self, *args, **kwargs):
        return {name: tensor.clone() for name, tensor in super().state_dict(*args, **kwargs).items()}

    def forward(self, x):
        return torch.relu(nn.functional.linear(x, *self.first))
