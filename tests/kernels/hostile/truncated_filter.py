"""Uses the middle half of the taps of a filter."""

PROBLEM = "long_filter"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, taps):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(4, 1, taps) / taps**0.5)

    def forward(self, x):
        return F.conv1d(x, self.filter[..., 64:-64], padding=63)
