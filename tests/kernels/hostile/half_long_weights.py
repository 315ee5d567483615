"""Rounds the positive weights of a long sum to half precision, where errors average out."""

PROBLEM = "long_mixing"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, terms, count):
        super().__init__()
        self.mixing = nn.Parameter(torch.rand(count, terms))

    def forward(self, x):
        return torch.sigmoid(x) @ self.mixing.half().float().t()
