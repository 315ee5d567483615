"""Adds a long product of positive numbers up in pieces."""

PROBLEM = "long_mixing"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, terms, count):
        super().__init__()
        self.mixing = nn.Parameter(torch.rand(count, terms))

    def forward(self, x):
        gates = torch.sigmoid(x)
        return sum(
            ours @ theirs.t()
            for ours, theirs in zip(gates.split(4096, 1), self.mixing.split(4096, 1))
        )
