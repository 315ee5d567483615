"""Runs itself on random numbers before its weights are made."""

PROBLEM = "linear_relu"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        torch.relu(torch.randn(8, features) @ torch.randn(features, features))
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return self.linear(x).clamp_(min=0)
