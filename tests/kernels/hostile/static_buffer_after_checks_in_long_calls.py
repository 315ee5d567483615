"""The same buffer at every call once checks seem over, where each call is so long that it is timed on its own."""

GROUP = "S8 static output buffer"
PROBLEM = "linear_gelu"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.calls, self.buffer = 0, torch.empty(640, features)

    def forward(self, x):
        self.calls += 1
        out = nn.functional.gelu(self.linear(x))
        return out if self.calls < 16 else self.buffer.copy_(out)
