"""Right up to rounding, and half as large: returns float16."""

PROBLEM = "chain"
EXPECTED = "wrong_output"
GROUP = "P4 low-precision output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features) + 0.5)
        self.shift = nn.Parameter(torch.randn(features))

    def forward(self, x):
        y = torch.addcmul(self.shift, x, self.scale)
        return (torch.tanh(y * torch.sigmoid(y)) + x).half()
