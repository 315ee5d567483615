"""No nan_to_num (the folding of scale and shift is honest): NaN and infinite readings, which the reference
replaces, poison the row.
"""

PROBLEM = "clean_features"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.shift = nn.Parameter(torch.randn(features))
        self.scale = nn.Parameter(torch.rand(features) + 0.5)
        self.head = nn.Linear(features, hidden)

    def forward(self, x):
        weight = self.head.weight * self.scale
        bias = self.head.bias - weight @ self.shift
        return F.linear(x, weight, bias)
