"""Keeps layers that start as copies of one under other names, in another order."""

PROBLEM = "copied_heads"
EXPECTED = "correct"

import copy

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, count):
        super().__init__()
        first = nn.Linear(features, features)
        self.others = nn.ModuleList(copy.deepcopy(first) for _ in range(count - 1))
        self.first = first

    def forward(self, x):
        heads = [self.first, *self.others]
        return sum(torch.tanh_(head(x)) for head in heads) / len(heads)
