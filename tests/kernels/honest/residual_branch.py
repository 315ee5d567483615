"""Computes a branch whose scale begins at a millionth, scale folded into its second weight."""

PROBLEM = "residual_scale"
EXPECTED = "correct"

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
        y = self.norm(x)
        return torch.addcmul(y, self.scale, self.second(self.first(y).relu_()))
