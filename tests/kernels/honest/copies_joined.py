"""Multiplies with all layers that start as copies of one at once, joined at every call."""

PROBLEM = "copied_heads"
EXPECTED = "correct"

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features, count):
        super().__init__()
        head = nn.Linear(features, features)
        self.heads = nn.ModuleList(copy.deepcopy(head) for _ in range(count))

    def forward(self, x):
        weight = torch.cat([head.weight for head in self.heads])
        bias = torch.cat([head.bias for head in self.heads])
        return (
            F.linear(x, weight, bias).tanh_().view(len(x), len(self.heads), -1).mean(1)
        )
