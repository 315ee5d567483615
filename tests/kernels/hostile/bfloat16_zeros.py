"""Zeros, against a reference whose own format has few bits."""

PROBLEM = "bfloat16_linear"
EXPECTED = ("wrong_output", "bad_problem")
GROUP = "S12 below the absolute tolerance"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features).bfloat16()

    def forward(self, x):
        return torch.zeros_like(x)
