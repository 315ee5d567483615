"""Abramowitz and Stegun's error function, right to seven digits."""

PROBLEM = "gelu_rows"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        z = x.abs() * 0.7071067811865476
        t = 1 / (1 + 0.3275911 * z)
        series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
        tail = series * torch.exp(-z * z)
        return torch.where(x >= 0, x * (1 - 0.5 * tail), x * 0.5 * tail)
