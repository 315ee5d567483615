"""Outputs of the order of 1e-20, from exponentials."""

PROBLEM = "tiny_outputs"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.expm1(2 * x)
        return torch.where(x > 9, 1e-20, y / (y + 2) * 1e-20)
