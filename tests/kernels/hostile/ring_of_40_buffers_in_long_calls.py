"""Outputs lie in 40 buffers by turns, where calls are so long that fewer of them are timed."""

PROBLEM = "linear_gelu"
EXPECTED = "wrong_output"
GROUP = "S8 static output buffer"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.ring, self.turn = [torch.empty(640, features) for _ in range(40)], 0

    def forward(self, x):
        self.turn = (self.turn + 1) % len(self.ring)
        return self.ring[self.turn].copy_(nn.functional.gelu(self.linear(x)))
