"""Runs under autocast and returns float32."""

PROBLEM = "linear_gelu"
EXPECTED = "wrong_output"
GROUP = "P3 autocast"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            out = F.gelu(self.linear(x))
        return out.float()
