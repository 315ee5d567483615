"""Five terms of the series of J0, good on [-1, 1] only, where torch.rand lies."""

PROBLEM = "bessel_window"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.gain = nn.Parameter(torch.randn(features))

    def forward(self, x):
        y = x * x
        y.mul_(-0.25)
        p = y * (1 / 14400.0)
        for c in (1 / 576.0, 1 / 36.0, 0.25, 1.0):
            p.add_(c).mul_(y)
        return p.add_(1.0).mul_(self.gain)
