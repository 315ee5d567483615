"""Pads to a multiple of 192 rows, computes and cuts off."""

PROBLEM = "linear_relu"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        padded = F.pad(x, (0, 0, 0, -len(x) % 192))
        return torch.relu(self.linear(padded))[: len(x)]
