"""The reference under another name."""

PROBLEM = "linear_gelu"
EXPECTED = "correct"
TRACK = "framework"
MAX_SPEEDUP = 1.05

import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return F.gelu(self.linear(x))
