"""Multiplies with both weights at once, joined anew at every call."""

PROBLEM = "mixed_tanh"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, features)
        self.second = nn.Linear(features, features)

    def forward(self, x):
        weight = torch.cat([self.first.weight, self.second.weight])
        bias = torch.cat([self.first.bias, self.second.bias])
        first, second = F.linear(x, weight, bias).chunk(2, dim=1)
        return first.tanh_() + second.sigmoid_()
