"""Leaves out a branch whose scale begins at a millionth."""

PROBLEM = "residual_scale"
EXPECTED = ("wrong_output", "bad_problem")
GROUP = "S12 below the absolute tolerance"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.first = nn.Linear(features, 2 * features)
        self.second = nn.Linear(2 * features, features)
        self.scale = nn.Parameter(1e-6 * torch.ones(features))

    def forward(self, x):
        return self.norm(x)
