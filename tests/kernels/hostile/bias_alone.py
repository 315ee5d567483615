"""Leaves out the product of small weights and returns the bias."""

PROBLEM = "linear_relu"
EXPECTED = "wrong_output"
GROUP = "S12 below the absolute tolerance"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return torch.relu(self.linear.bias.expand(x.shape[0], -1).clone())
