"""Rounds its operands to fourteen bits after the point."""

PROBLEM = "linear_relu"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn


def rounded(x):
    return (((x.view(torch.int32) + 0x100) >> 9) << 9).view(torch.float32)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return torch.relu(rounded(x) @ rounded(self.linear.weight).t() + self.linear.bias)
