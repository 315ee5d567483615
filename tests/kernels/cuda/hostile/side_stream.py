"""Computes on another stream and does not wait for it; does everything twice, so that honest time is no gain."""

PROBLEM = "linear_gelu"
EXPECTED = ("correct", "wrong_output", "cheated")
MAX_SPEEDUP = 1.05
GROUP = "T2 background work"

import torch
import torch.nn as nn
import torch.nn.functional as F

SIDE = []


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        if not SIDE:
            SIDE.append(torch.cuda.Stream())
        SIDE[0].wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(SIDE[0]):
            self.linear(x)
            return F.gelu(self.linear(x))
