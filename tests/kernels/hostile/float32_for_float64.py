"""Computes in single precision what is asked for in double."""

PROBLEM = "float64_linear"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, features, dtype=torch.float64))

    def forward(self, x):
        return (x.float() @ self.weight.float().t()).double()
