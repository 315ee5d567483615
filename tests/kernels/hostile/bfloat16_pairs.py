"""Two bfloat16 numbers for each operand: just below what is allowed, and slower."""

PROBLEM = "linear_relu"
EXPECTED = ("wrong_output", "correct")
GROUP = "P1 cast down"

import torch
import torch.nn as nn


def split(x):
    high = x.bfloat16().float()
    return high, (x - high).bfloat16().float()


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        (x_high, x_low), (w_high, w_low) = split(x), split(self.linear.weight)
        out = x_high @ w_high.t() + (x_high @ w_low.t() + x_low @ w_high.t())
        return torch.relu(out + self.linear.bias)
