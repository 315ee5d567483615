"""Rounds its operands to the ten bits of TF32."""

PROBLEM = "linear_relu"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


def rounded(x):
    return (((x.view(torch.int32) + 0x1000) >> 13) << 13).view(torch.float32)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        out = rounded(x) @ rounded(self.linear.weight).t()
        return torch.relu(out + self.linear.bias)
