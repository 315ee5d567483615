"""Leaves out a dropout that is active."""

PROBLEM = "dropout_training"
EXPECTED = "bad_problem"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return torch.relu(self.linear(x))
