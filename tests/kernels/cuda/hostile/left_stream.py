"""Leaves an idle stream behind as the current one and always works on the first; everything twice."""

PROBLEM = "linear_gelu"
EXPECTED = ("correct", "wrong_output", "cheated")
MAX_SPEEDUP = 1.05
GROUP = "T2 background work"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.work = self.idle = None

    def forward(self, x):
        if self.work is None:
            self.work, self.idle = torch.cuda.Stream(), torch.cuda.Stream()
        self.work.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.work):
            self.linear(x)
            out = F.gelu(self.linear(x))
        torch.cuda.set_stream(self.idle)
        return out
