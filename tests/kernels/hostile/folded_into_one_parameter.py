"""Keeps only the product of two weights: no trained state of the reference can be loaded."""

PROBLEM = "two_linear"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        first = nn.Linear(features, features, bias=False)
        second = nn.Linear(features, features, bias=True)
        self.weight = nn.Parameter((second.weight @ first.weight).detach())
        self.bias = nn.Parameter(second.bias.detach().clone())

    def forward(self, x):
        return F.linear(x, self.weight, self.bias).relu_()
