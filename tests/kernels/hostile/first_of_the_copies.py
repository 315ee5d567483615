"""Computes with the first of several layers that start as copies of one, as those of nn.TransformerEncoder do."""

PROBLEM = "copied_heads"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import copy

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, count):
        super().__init__()
        head = nn.Linear(features, features)
        self.heads = nn.ModuleList(copy.deepcopy(head) for _ in range(count))

    def forward(self, x):
        return torch.tanh(self.heads[0](x))
