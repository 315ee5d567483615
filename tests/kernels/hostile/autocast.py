"""Lets autocast choose bfloat16."""

PROBLEM = "linear_relu"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = self.linear(x)
        return torch.relu(out.float())
