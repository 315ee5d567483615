"""Adds up products of slices of eight columns, from the last to the first."""

PROBLEM = "linear_relu"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        out = self.linear.bias.expand(x.shape[0], -1).clone()
        for stop in range(x.shape[1], 0, -8):
            out += x[:, stop - 8 : stop] @ self.linear.weight[:, stop - 8 : stop].t()
        return out.relu_()
